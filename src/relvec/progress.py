"""One progress bar for every long job: rate, time left, silent when nobody watches."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Keep transformers from reporting on loading and saving, which relvec checks and reports itself."""
    import logging
    from functools import partial
    from importlib import import_module

    from transformers.utils import logging as transformers_logging

    verbosity, shows_progress = transformers_logging.get_verbosity(), transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity(logging.ERROR)
    transformers_logging.disable_progress_bar()
    gguf: Any = import_module("transformers.modeling_gguf_pytorch_utils")
    bar, gguf.tqdm = gguf.tqdm, partial(gguf.tqdm, disable=True)  # this one bar asks nobody
    try:
        yield
    finally:
        gguf.tqdm = bar
        transformers_logging.set_verbosity(verbosity)
        if shows_progress:
            transformers_logging.enable_progress_bar()
