"""Parquet files, through pyarrow, which not every installation has."""

from pathlib import Path
from typing import Any

from relvec.errors import RelvecError, needed_for


def pyarrow() -> tuple[Any, Any]:
    """The modules `pyarrow` and `pyarrow.parquet`."""
    with needed_for("A parquet file"):
        import pyarrow
        import pyarrow.parquet
    return pyarrow, pyarrow.parquet


def read_table(path: Path) -> Any:
    """The file as a `pyarrow.Table`."""
    arrow, parquet = pyarrow()
    try:
        return parquet.read_table(path)
    except (arrow.ArrowException, OSError) as error:
        raise RelvecError(f"{path} is no whole parquet file ({error}); check the path, or write it again.") from error


def is_vectors(column: Any) -> bool:
    """Whether this is a column of pyarrow that holds lists of numbers."""
    kind = getattr(getattr(column, "type", None), "value_type", None)
    return str(kind) in ("halffloat", "float", "double")
