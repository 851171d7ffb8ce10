"""The words that people use, as GloVe counts them and WordNet knows them, and their inflected forms."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from relvec.distillation.wordnet import Synset, SynsetKey, read_synsets
from relvec.errors import RelvecError
from relvec.io.files import read_lines

PARTS_OF_SPEECH = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
MOST_FREQUENT = 80_000  # a word on its own is among these
MOST_FREQUENT_PARTS = 8_000  # each part of a term of two words is among these
PERSONS = 18  # the lexicographer file of persons

# WordNet has most of these as rare nouns: a for the letter, in for the inch.
_STOP_WORDS = """
a about above after again against all also although am among an and another any are around as at away back be
because been before being below between both but by can could despite did do does doing done down due during each
either else even ever every few for from further get give go going gone got had has have having he hence her here
hers herself him himself his how however if in including into is it its itself just later least less like made make
many may me might mine more most much must my myself neither never nor not now of off often on once one only onto or
other others our out over own per perhaps put quite rather really same say says said several shall she should since
so some something soon still such take than that the their them then there these they thing things this those though
through thus to together too toward towards under until up upon us very was way we well went were what when where
whether which while who whole whom whose why will with within without would yet you your first second third two
three four five six seven eight nine ten hundred thousand million billion dozen etc especially usually typically
used using use having
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
SHORT_WORDS = frozenset(("ox", "go", "ax", "ad", "be", "do"))

# How a longer word is made, and what it then is to the shorter one; WordNet itself has the other derivations.
AFFIXES = (
    ("a", "{}ly", "r", "adverb"),
    ("a", "{}ness", "n", "state"),
    ("a", "un{}", "a", "negation"),
    ("v", "un{}", "v", "reversal"),
    ("v", "re{}", "v", "repetition"),
    ("v", "{}able", "a", "possibility"),
    ("v", "{}ment", "n", "result"),
    ("n", "{}less", "a", "lack"),
    ("n", "{}ful", "a", "abundance"),
)

_TERM = re.compile(r"[A-Za-z]+(-[A-Za-z]+)*( [A-Za-z]+(-[A-Za-z]+)*)?")


@dataclass(frozen=True)
class Entry:
    """A word as one part of speech: its synsets, most used first, and how many of them occur in tagged text."""

    synsets: tuple[SynsetKey, ...]
    tagged: int


class Words:
    """`by_frequency` are lower-cased words, the most frequent first; `folder` holds the files of WordNet."""

    def __init__(self, folder: str | Path, by_frequency: Sequence[str]) -> None:
        folder = Path(folder).expanduser()
        self.rank = {word: place for place, word in reversed(list(enumerate(by_frequency)))}
        self.synsets: dict[SynsetKey, Synset] = read_synsets(folder)
        self.entries = {pos: dict(_entries(folder, pos)) for pos in PARTS_OF_SPEECH}
        self._irregular = {pos: _irregular(folder, pos) for pos in PARTS_OF_SPEECH}
        self._parts: dict[str, list[str]] = {}
        self._lemmas: dict[str, str] = {}
        for pos in ("n", "v", "a"):
            for lemma in sorted((word for word in self.entries[pos] if word in self.rank), key=self.frequency):
                if self.natural(lemma) != lemma:  # names have no forms
                    continue
                for _, form in self.inflections(lemma, pos):
                    self._lemmas.setdefault(form, lemma)

    def frequency(self, word: str) -> int:
        """The place among all words by frequency, after all of them if it is not there."""
        return self.rank.get(word.lower(), len(self.rank))

    def in_use(self, term: str) -> bool:
        """Whether people use the term: frequent letters, no numbers, no stop word, no abbreviation that looks so."""
        lowered = term.lower()
        if not _TERM.fullmatch(term) or lowered in STOP_WORDS or (len(term) < 3 and lowered not in SHORT_WORDS):
            return False
        parts = lowered.split(" ")
        limit = MOST_FREQUENT if len(parts) == 1 else MOST_FREQUENT_PARTS
        return all(self.frequency(part) < limit and len(part) > 1 for part in parts)

    def natural(self, word: str) -> str | None:
        """A lower-cased word as its main sense in WordNet spells it: China, bird; none if WordNet has it not."""
        for pos in self.parts_of_speech(word):
            words = self.synsets[self.entry(word, pos).synsets[0]].words
            return next((spelling for spelling in words if spelling.lower() == word), word)
        return word if word in self._lemmas else None

    def lemma(self, word: str) -> str:
        """What the word is a form of, itself if it is none."""
        return self._lemmas.get(word, word)

    def entry(self, word: str, pos: str) -> Entry:
        return self.entries[pos].get(word.lower(), Entry((), 0))

    def sense(self, word: str, key: SynsetKey) -> int:
        """The place of the synset among those of the word, the most used being 0."""
        synsets = self.entry(word, key[0]).synsets
        return synsets.index(key) if key in synsets else len(synsets)

    def parts_of_speech(self, word: str) -> list[str]:
        """Those in which the word is found in text, its main one first."""
        if word not in self._parts:
            self._parts[word] = self._found_parts(word)
        return self._parts[word]

    def _found_parts(self, word: str) -> list[str]:
        entries = {pos: self.entry(word, pos) for pos in PARTS_OF_SPEECH}
        order = sorted(entries, key=lambda pos: (-entries[pos].tagged, -len(entries[pos].synsets)))
        return [pos for place, pos in enumerate(order) if entries[pos].tagged or (not place and entries[pos].synsets)]

    def is_name(self, word: str) -> bool:
        """Whether the word is a person's name, or unknown to WordNet as most names are."""
        spelling = self.natural(word)
        return spelling is None or (spelling != word and self.topic(word) == PERSONS)

    def topic(self, word: str) -> int:
        """The lexicographer file of the main sense, if that is a noun's; 0 if it is not."""
        main = self.parts_of_speech(word)[:1]
        return self.synsets[self.entry(word, "n").synsets[0]].file if main == ["n"] else 0

    def inflections(self, lemma: str, pos: str) -> Iterator[tuple[str, str]]:
        """Names of forms and the forms: ("plural", "wolves"); irregular ones as WordNet lists them."""
        irregular = [form for form in self._irregular[pos].get(lemma, ()) if self.in_use(form)]
        if pos == "n":
            yield from (("plural", form) for form in irregular or [_with_s(lemma)])
        elif pos == "v":
            ing = [form for form in irregular if form.endswith("ing")]
            past = [form for form in irregular if form not in ing and not form.endswith("s")]
            yield from (("past", form) for form in past or [_with_ending(lemma, "ed")])
            yield from (("present participle", form) for form in ing or [_with_ending(lemma, "ing")])
            yield "third person", _with_s(lemma)
        elif pos == "a":
            graded = irregular or [_with_ending(lemma, "er"), _with_ending(lemma, "est")]
            # Without a superlative of its own, number would be what is more numb.
            if any(form.endswith("st") and self.in_use(form) for form in graded):
                yield from (("superlative" if form.endswith("st") else "comparative", form) for form in graded)

    def forms(self) -> Iterator[tuple[str, str, str]]:
        """Words in use, a form in use of each, and what kind of form it is; main parts of speech first."""
        lemmas = [word for word in self.rank if self.in_use(word) and self.natural(word) == word]
        for place in range(len(PARTS_OF_SPEECH)):
            for lemma in lemmas:
                for pos in self.parts_of_speech(lemma)[place : place + 1]:
                    for kind, form in (*self.inflections(lemma, pos), *self._derived(lemma, pos)):
                        if form != lemma and self.in_use(form):
                            yield lemma, form, kind

    def _derived(self, lemma: str, pos: str) -> Iterator[tuple[str, str]]:
        if len(lemma) < 4:  # relate is not to late again
            return
        for base, pattern, result, kind in AFFIXES:
            stem = lemma[:-1] + "i" if lemma.endswith("y") and pattern[2:] in ("ly", "ness", "less", "ful") else lemma
            stem = lemma[:-1] if pattern == "{}ly" and lemma.endswith("le") else stem
            derived = pattern.format(stem)
            if base == pos and derived in self.entries[result]:
                yield kind, derived


def _with_s(word: str) -> str:
    if re.search(r"(s|x|z|ch|sh)$", word):
        return word + "es"
    return word[:-1] + "ies" if re.search(r"[^aeiou]y$", word) else word + "s"


def _with_ending(word: str, ending: str) -> str:
    """With -ed, -ing, -er or -est; WordNet lists the words that double a letter."""
    if word.endswith("e") and not (ending == "ing" and word.endswith(("ee", "oe", "ye"))):
        return word[:-1] + ending
    return word[:-1] + "i" + ending if ending != "ing" and re.search(r"[^aeiou]y$", word) else word + ending


def _entries(folder: Path, pos: str) -> Iterator[tuple[str, Entry]]:
    """`lemma pos synsets pointers symbol... senses tagged offset...`"""
    path = folder / f"index.{PARTS_OF_SPEECH[pos]}"
    if not path.is_file():
        return
    name, lines = read_lines(path)
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("  "):  # the licence at the top is indented
            continue
        fields = line.split()
        try:
            offsets = 6 + int(fields[3])
            keys = tuple((pos, offset) for offset in fields[offsets:])
            yield fields[0].replace("_", " "), Entry(keys, int(fields[offsets - 1]))
        except (IndexError, ValueError) as error:
            problem = f"{name}, line {number}: not a word of WordNet's index ({line[:30]!r})"
            raise RelvecError(f"{problem}; use the index files as distributed.") from error


def _irregular(folder: Path, pos: str) -> dict[str, list[str]]:
    """From lemmas to irregular forms; a line is `form lemma...`."""
    path = folder / f"{PARTS_OF_SPEECH[pos]}.exc"
    forms: dict[str, list[str]] = defaultdict(list)
    for line in read_lines(path)[1] if path.is_file() else ():
        form, *lemmas = line.replace("_", " ").split() or [""]
        for lemma in lemmas:
            if form != lemma:
                forms[lemma].append(form)
    return forms
