"""relvec cache: show what is in the cache, or empty it."""

import typer

from relvec.cli.options import Json
from relvec.cli.output import Table, message, show
from relvec.errors import size_text
from relvec.storage.cache import cache_folder, cache_info, clear_cache

app = typer.Typer(help="Show or clear the cache of computed vectors and scores.", no_args_is_help=True)


@app.command()
def info(json: Json = False) -> None:
    """Show what is cached: vectors, likelihoods, counts, classifiers."""
    spaces = [
        {"what": space.name.rpartition(" ")[0] or space.name, "of": space.about, "entries": space.entries}
        | {"megabytes": round(space.value_bytes / 1e6, 1)}
        for space in cache_info()
    ]
    rows = [space.values() for space in spaces]
    show(json, spaces, Table(["what", "of", "entries", "MB"], rows, str(cache_folder())))


@app.command()
def clear() -> None:
    """Delete all cached results; downloaded models stay."""
    spaces = cache_info()
    clear_cache()
    freed = size_text(sum(space.value_bytes for space in spaces))
    message(f"{sum(space.entries for space in spaces):,} entries, {freed} removed")
