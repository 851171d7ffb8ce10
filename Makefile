.PHONY: check lint types test browser coverage docs tables speed cluster chaos soak

check: lint types docs test

lint:
	ruff check .
	ruff format --check .

types:
	mypy

test:
	pytest -n auto

browser:
	pytest -m browser tests/serve/test_page.py

coverage:
	pytest -n auto --cov=relvec --cov-report=term-missing:skip-covered

cluster:
	pip install -c constraints.txt -e '.[dev,milvus,ray]'
	pytest -n 0 tests/bulk tests/index/test_milvus.py

docs:
	NO_MKDOCS_2_WARNING=1 mkdocs build --quiet --strict

tables:
	python tools/make_tables.py
	python tools/make_speed_plot.py

speed:
	python benchmarks/encode.py --accuracy relvec-mpnet relvec-small relvec-nano --output experiments/encode.json
	$(MAKE) tables

chaos:
	python chaos

soak:
	nice python chaos --only soak --soak-minutes 30
