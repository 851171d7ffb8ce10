"""Pairs of words in use that WordNet relates: by a pointer, by way of a broader word, or in a definition."""

import re
from collections.abc import Iterator

from associations import Associations
from words import PERSONS, Words

from relvec.distillation.wordnet import Synset, SynsetKey
from relvec.pairs import Pair

# The inverses of the other pointers are left out: they would only turn the same pairs round.
POINTERS = {
    "@": "hypernym",
    "@i": "instance hypernym",
    "%m": "member meronym",
    "%s": "substance meronym",
    "%p": "part meronym",
    "!": "antonym",
    "+": "derivation",
    "=": "attribute",
    "*": "entailment",
    ">": "cause",
    "&": "similar to",
    "\\": "pertainym",
    "<": "participle",
    ";c": "topic",
}
SENSES = 2  # a synset that is a word's third sense or a later one is not what the word brings to mind
SIMILARITY = 0.25  # below it, the words are related only in a sense that is not in use
LEVELS = 7  # how far above a word a broader one is looked for
BROADER_FREQUENCY = 8_000  # a frequent word, as bird, is broader in use; waterbird is only in WordNet
NARROWER = 2_500  # a word above more synsets than these says next to nothing: entity, object
BROADER_SIMILARITY = 0.15
PART_SIMILARITY = 0.3  # a part of a broader thing is one of the narrower thing if the two are met together
DEFINING_SIMILARITY = 0.4
DEFINING_WORDS = 2
DEFINING_FREQUENCY = 20_000
# Nouns of WordNet's frame that tell nothing of what is put below or beside them.
_VAGUE = """
act action activity area assets attribute belief center change commerce communication condition content cost
covering device district entity event formation group happening idea instrumentality item leader magnitude
municipality object organization part people person point process property quality region relation segment signal
solid statement structure thing thinking trait unit work worker
"""
VAGUE = frozenset(_VAGUE.split())

Related = tuple[Pair, str]


class Relations:
    def __init__(self, words: Words, associations: Associations) -> None:
        self._words = words
        self._associations = associations
        self._above = {key: list(self._ancestors(key)) for key in words.synsets if key[0] == "n"}
        self._narrower: dict[SynsetKey, int] = {}
        for above in self._above.values():
            for key in above:
                self._narrower[key] = self._narrower.get(key, 0) + 1

    def pointers(self) -> Iterator[Related]:
        """Words that a pointer joins; for a whole synset, its first two words in use and the first of the other."""
        for key, synset in self._words.synsets.items():
            for pointer in synset.pointers:
                target = self._words.synsets.get(pointer.target)
                if target is None or pointer.symbol not in POINTERS:
                    continue
                heads = self._usable(key, synset, pointer.source_word)[:2]
                tails = self._usable(pointer.target, target, pointer.target_word)[:1]
                if pointer.symbol == "@" and self._narrower.get(pointer.target, 0) >= NARROWER:
                    continue
                for pair in ((head, tail) for head in heads for tail in tails):
                    # Words of one stem are related whatever their vectors.
                    if pointer.source_word or self._associations.similarity(*pair) >= SIMILARITY:
                        yield pair, POINTERS[pointer.symbol]

    def synonyms(self) -> Iterator[Related]:
        """The first two words of a synset that have it as their main sense."""
        for key, synset in self._words.synsets.items():
            words = [word for word in self._usable(key, synset, 0) if not self._words.sense(word, key)]
            words = [word for word in words if " " not in word]
            if len(words) > 1:
                yield (words[0], words[1]), "synonym"

    def broader(self) -> Iterator[Related]:
        """From a noun to a frequent one some levels above it: from pelican to bird."""
        for head, key in self._nouns():
            for above in self._above[key][1:LEVELS]:
                tails = self._usable(above, self._words.synsets[above], 0)[:1]
                for tail in tails:
                    frequent = self._words.frequency(tail) < BROADER_FREQUENCY
                    similar = self._associations.similarity(head, tail) >= BROADER_SIMILARITY
                    if frequent and similar and self._narrower[above] < NARROWER:
                        yield (head, tail), "hypernym"

    def inherited_parts(self) -> Iterator[Related]:
        """From a noun to a part of what it is a kind of: from eagle to wing."""
        for head, key in self._nouns():
            if self._words.synsets[key].file == PERSONS or head != head.lower():
                continue
            for above in self._above[key][:LEVELS]:
                for pointer in self._words.synsets[above].pointers:
                    if pointer.symbol in ("%p", "%s") and pointer.target in self._words.synsets:
                        for tail in self._usable(pointer.target, self._words.synsets[pointer.target], 0)[:1]:
                            if " " not in tail and self._associations.similarity(head, tail) >= PART_SIMILARITY:
                                yield (head, tail), POINTERS[pointer.symbol]

    def definitions(self) -> Iterator[Related]:
        """From a word to the words of its definition that are met with it, and back: hangar, aircraft."""
        for key, synset in self._words.synsets.items():
            if key[0] == "r":
                continue
            for head in self._usable(key, synset, 0)[:1]:
                if self._words.sense(head, key) or " " in head:
                    continue
                for tail in self._defining(head, synset.definition):
                    yield (head, tail), "has in its definition"
                    yield (tail, head), "in the definition of"

    def _defining(self, head: str, definition: str) -> list[str]:
        # After a semicolon come examples; in brackets comes what else is said.
        text = re.sub(r"\([^)]*\)", " ", definition.split(";")[0].split('"')[0])
        found: dict[str, float] = {}
        for token in re.findall(r"[a-z-]+", text.lower()):
            word = token if self._words.parts_of_speech(token) else self._words.lemma(token)
            content = any(pos != "r" for pos in self._words.parts_of_speech(word))
            if content and self._words.in_use(word) and self._words.frequency(word) < DEFINING_FREQUENCY:
                found[self._words.natural(word) or word] = self._associations.similarity(head, word)
        close = [word for word in found if found[word] >= DEFINING_SIMILARITY]
        return sorted(close, key=lambda word: -found[word])[:DEFINING_WORDS]

    def _nouns(self) -> Iterator[tuple[str, SynsetKey]]:
        for key in self._above:
            for head in self._usable(key, self._words.synsets[key], 0)[:1]:
                if " " not in head and self._words.parts_of_speech(head)[:1] == ["n"]:
                    yield head, key

    def _usable(self, key: SynsetKey, synset: Synset, number: int) -> list[str]:
        candidates = synset.words[number - 1 : number] if number else synset.words
        if synset.file == PERSONS and any(pointer.symbol == "@i" for pointer in synset.pointers):
            candidates = [word for word in candidates if " " in word]  # many share a surname
        candidates = [word for word in candidates if word not in VAGUE]
        return [word for word in candidates if self._words.in_use(word) and self._words.sense(word, key) < SENSES]

    def _ancestors(self, key: SynsetKey) -> Iterator[SynsetKey]:
        """Upwards, by the first pointer of each synset."""
        seen = {key}
        while True:
            pointers = self._words.synsets[key].pointers
            above = next((pointer.target for pointer in pointers if pointer.symbol in ("@", "@i")), None)
            if above is None or above in seen or above not in self._words.synsets:
                return
            yield above
            seen.add(above)
            key = above
