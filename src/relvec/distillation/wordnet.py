"""Related words from the database files of WordNet, in the format of its manual page wndb(5WN)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from relvec.errors import RelvecError
from relvec.io.files import expanded, read_lines
from relvec.pairs import Pair

PARTS_OF_SPEECH = {"data.noun": "n", "data.verb": "v", "data.adj": "a", "data.adv": "r"}

# Hypernym, its instances, member, substance and part meronym, antonym, derivation, attribute, entailment, cause,
# similar. Their inverses would only give the same pairs reversed.
POINTERS = frozenset(("@", "@i", "%m", "%s", "%p", "!", "+", "=", "*", ">", "&"))

_TERM = re.compile(r"[A-Za-z][A-Za-z'.-]*( [A-Za-z'.-]+)?")
_MARKER = re.compile(r"\((a|p|ip)\)$")  # where in a sentence an adjective may stand


SynsetKey = tuple[str, str]
"""A part of speech, n, v, a or r, and the offset in its file."""


@dataclass(frozen=True)
class Pointer:
    """From a word of a synset to a word of another; word 0 is the synset as a whole."""

    symbol: str
    target: SynsetKey
    source_word: int
    target_word: int


@dataclass(frozen=True)
class Synset:
    """Words of one meaning, all pointers from it, its lexicographer file (18 are persons) and its definition."""

    words: list[str]
    pointers: list[Pointer]
    file: int
    definition: str

    def word(self, number: int) -> str | None:
        """A word by its number, or the first usable one for the whole synset; none if it has more than two parts."""
        candidates = self.words[number - 1 : number] if number else self.words
        return next((word for word in candidates if _TERM.fullmatch(word)), None)


def read_wordnet(folder: str | Path) -> list[Pair]:
    """Distinct pairs of words, one or two parts each, that a pointer joins: from oak to tree, from wheel to car.

    Where a pointer joins whole synsets, the first usable word of each stands for it.
    """
    return list(dict.fromkeys(_pairs(read_synsets(folder))))


def read_synsets(folder: str | Path) -> dict[SynsetKey, Synset]:
    """All synsets of the files that are there of data.noun, data.verb, data.adj and data.adv."""
    folder = expanded(folder)
    paths = [folder / name for name in PARTS_OF_SPEECH if (folder / name).is_file()]
    if not paths:
        names = ", ".join(PARTS_OF_SPEECH)
        raise RelvecError(f"{folder} holds no file of WordNet; give the folder with its {names}.")
    return {key: synset for path in paths for key, synset in _synsets(path)}


def _pairs(synsets: dict[SynsetKey, Synset]) -> Iterator[Pair]:
    for synset in synsets.values():
        for pointer in synset.pointers:
            if pointer.symbol not in POINTERS:
                continue
            target = synsets.get(pointer.target)
            head = synset.word(pointer.source_word)
            tail = target.word(pointer.target_word) if target else None
            if head and tail and head.lower() != tail.lower():
                yield head, tail


def _synsets(path: Path) -> Iterator[tuple[SynsetKey, Synset]]:
    name, lines = read_lines(path)
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("  "):  # the licence at the top is indented
            continue
        try:
            data, _, definition = line.partition(" | ")
            offset, synset = _parsed(data.split(), definition.strip())
        except (IndexError, ValueError) as error:
            problem = f"{name}, line {number}: not a synset of WordNet ({line[:30]!r})"
            raise RelvecError(f"{problem}; use the data files as distributed.") from error
        yield (PARTS_OF_SPEECH[path.name], offset), synset


def _parsed(fields: list[str], definition: str) -> tuple[str, Synset]:
    """`offset file type count (word id)... count (symbol offset part-of-speech words)...`

    The first count and the numbers of words are hexadecimal.
    """
    words_end = 4 + 2 * int(fields[3], 16)
    words = [_MARKER.sub("", word).replace("_", " ") for word in fields[4:words_end:2]]
    pointers = []
    for start in range(words_end + 1, words_end + 1 + 4 * int(fields[words_end]), 4):
        symbol, offset, part_of_speech, numbers = fields[start : start + 4]
        target = ("a" if part_of_speech == "s" else part_of_speech, offset)  # satellites are in data.adj
        pointers.append(Pointer(symbol, target, int(numbers[:2], 16), int(numbers[2:], 16)))
    return fields[0], Synset(words, pointers, int(fields[1]), definition)
