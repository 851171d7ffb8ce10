.PHONY: check lint types test coverage docs tables

check: lint types test

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
	mkdocs build --strict

tables:
	python tools/make_tables.py
