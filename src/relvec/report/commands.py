"""Commands as a reader can type them: without the folders of the machine on which they ran."""

import re
import shlex
from itertools import pairwise

_FOLDERS = re.compile(r"(?:[A-Za-z]:[\\/]|[/~]|\.\.?[\\/])(?:.*[\\/])?(?=[^\\/])")


def portable(command: str) -> str:
    """The command with the data folder as DATA, and the last part of every other path that leads out of here.

    >>> portable("relvec evaluate analogy --data-dir /home/me/data --set vectors=~/big/glove.npz --model runs/tuned")
    'relvec evaluate analogy --data-dir DATA --set vectors=glove.npz --model runs/tuned'
    """
    try:
        words = shlex.split(command)
    except ValueError:  # typed by hand into a record
        words = command.split()
    joined = [part for word in words for part in (word.split("=", 1) if word.startswith("--data-dir=") else [word])]
    folders = [after.rstrip("/\\") for word, after in pairwise(joined) if word == "--data-dir"]
    return shlex.join(_portable(word, folders) for word in joined)


def last_part(path: str) -> str:
    """The last part of a path that leads out of the working folder; anything else stays.

    >>> last_part("/home/me/models/mpnet"), last_part("microsoft/mpnet-base"), last_part("[h] and/or [t]")
    ('mpnet', 'microsoft/mpnet-base', '[h] and/or [t]')
    """
    return _FOLDERS.sub("", path.rstrip("/\\"), count=1) if _FOLDERS.match(path) else path


def _portable(word: str, data_folders: list[str]) -> str:
    name, sign, value = word.rpartition("=") if re.match(r"[\w-]+=", word) else ("", "", word)
    for folder in data_folders:
        if value.rstrip("/\\") == folder:
            return f"{name}{sign}DATA"
        if value.startswith(f"{folder}/"):
            return f"{name}{sign}DATA{value.removeprefix(folder)}"
    return f"{name}{sign}{last_part(value)}"
