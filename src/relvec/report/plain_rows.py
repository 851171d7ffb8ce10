"""A table as plain rows, for CSV and JSON: a number and its spread have a column each."""

import csv
import io
from typing import Any

from relvec.report.table import Table

PARTS = {"sd": "deviation", "low": "low", "high": "high", "mark": "mark"}


def plain_rows(table: Table) -> list[dict[str, Any]]:
    """One dictionary a row, all with the same keys: labels, numbers (None if missing), `origin`.

    A number `sat` has `sat_sd` (over seeds), `sat_low` and `sat_high` (95 % interval) and `sat_mark` beside it, where
    some row has them.
    """
    has = {
        (column.key, part)
        for row in table.rows
        for column in table.columns
        for part, name in PARTS.items()
        if column.key in row.values and getattr(row.values[column.key], name) not in (None, "")
    }
    rows = []
    for row in table.rows:
        plain: dict[str, Any] = dict(zip(map(_key, table.label_titles), row.labels, strict=True))
        for column in table.columns:
            value, key = row.values.get(column.key), _key(column.key) if table.has_origin else column.title
            plain[key] = None if value is None else round(value.mean, 4)
            for part, name in PARTS.items():
                if (column.key, part) in has:
                    plain[f"{key}_{part}"] = None if value is None else _rounded(getattr(value, name))
        if table.has_origin:
            plain["origin"] = row.origin or "measured"
        rows.append(plain)
    return rows


def as_csv(table: Table) -> str:
    """The rows as CSV with a header; what is missing is empty."""
    rows = plain_rows(table)
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _key(title: str) -> str:
    return title.replace("/", "_").replace(" ", "_").lower()


def _rounded(value: Any) -> Any:
    return round(value, 4) if isinstance(value, float) else value
