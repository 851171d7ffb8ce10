"""One progress bar for every long job: rate, time left, silent when nobody watches."""

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tqdm.auto import tqdm


def progress_bar(total: int, what: str, unit: str = "pair", show: bool | None = None, **options: Any) -> "tqdm[Any]":
    """A bar on stderr that appears after two seconds; `show=None` means only on a terminal."""
    if show is None:
        show = sys.stderr.isatty()
    if show:
        from tqdm.auto import tqdm
    else:
        from tqdm.std import tqdm  # it starts quicker than the one that knows notebooks
    return tqdm(total=total, desc=what, unit=unit, unit_scale=True, delay=2, disable=not show, **options)
