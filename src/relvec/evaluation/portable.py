"""Commands, facts and paths as any reader can use them: without the folders and the user of one machine."""

import hashlib
import re
import shlex
from itertools import pairwise
from typing import Any

_FOLDERS = re.compile(r"(?:[A-Za-z]:[\\/]|[/~]|\.\.?[\\/])(?:.*[\\/])?(?=[^\\/])")
_HERE = re.compile(r"^(?:\.[\\/]+)+")
_OPTION = re.compile(r"(?:[\w-]+=)+|-[A-Za-z](?=[/~.])")  # what may stand before a path in one word
_USER = re.compile(r"(?<=://)[^/@]*@")


def portable(command: str) -> str:
    """The command with the data folder as DATA, and the last part of every other path that leads out of here.

    >>> portable("relvec evaluate analogy --data-dir /home/me/data --set vectors=~/big/glove.npz --model runs/tuned")
    'relvec evaluate analogy --data-dir DATA --set vectors=glove.npz --model runs/tuned'
    """
    words = shlex.split(command)
    joined = [part for word in words for part in (word.split("=", 1) if word.startswith("--data-dir=") else [word])]
    folders = [after.rstrip("/\\") for word, after in pairwise(joined) if word == "--data-dir"]
    return shlex.join(_portable(word, folders) for word in joined)


def portable_facts(facts: dict[str, Any]) -> dict[str, Any]:
    """The facts with the last part of every path, also in lists; a template is no path.

    >>> portable_facts({"base": "/home/me/mpnet", "data": ["semeval2012", "../mine.jsonl"], "seed": 0})
    {'base': 'mpnet', 'data': ['semeval2012', 'mine.jsonl'], 'seed': 0}
    """

    def cut(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [cut(each) for each in value]
        return last_part(value) if isinstance(value, str) else value

    return {name: value if name == "template" else cut(value) for name, value in facts.items()}


def portable_path(path: str) -> str:
    """A path that leads out of here by its last part, after a checksum of its folder: files of one name stay apart.

    >>> portable_path("/home/me/mine.jsonl"), portable_path("./mine/questions/"), portable_path("sat")
    ('9c1db2/mine.jsonl', 'mine/questions', 'sat')
    """
    path = _HERE.sub("", path.rstrip("/\\")) or path
    name = last_part(path)
    folder = path.removesuffix(name)
    return f"{hashlib.sha256(folder.encode()).hexdigest()[:6]}/{name}" if folder else name


def last_part(path: str) -> str:
    """The last part of a path that leads out of the working folder; anything else stays.

    >>> last_part("/home/me/models/mpnet"), last_part("microsoft/mpnet-base"), last_part("[h] and/or [t]")
    ('mpnet', 'microsoft/mpnet-base', '[h] and/or [t]')
    """
    return _FOLDERS.sub("", path.rstrip("/\\"), count=1) if _FOLDERS.match(path) else path


def _portable(word: str, data_folders: list[str]) -> str:
    option = _OPTION.match(word)
    name, value = (option[0], word[option.end() :]) if option else ("", word)
    for folder in data_folders:
        if value.rstrip("/\\") == folder:
            return f"{name}DATA"
        if value.startswith(f"{folder}/"):
            return f"{name}DATA{value.removeprefix(folder)}"
    return name + last_part(_USER.sub("", value))
