.PHONY: check lint types test coverage docs tables

check: lint types docs test

lint:
	ruff check .
	ruff format --check .

types:
	mypy

test:
	pytest -n auto

coverage:
	pytest -n auto --cov=relvec --cov-report=term-missing:skip-covered

docs:
	NO_MKDOCS_2_WARNING=1 mkdocs build --quiet --strict

tables:
	python tools/make_tables.py
