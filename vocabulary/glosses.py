"""Words that meet in the definitions and examples of WordNet, a small corpus of everyday things: sweater, wool."""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import combinations

from associations import CONCRETE, LEAST_FREQUENT_RANK, Associations
from relations import VAGUE
from words import Words

from relvec.pairs import Pair

MOST_FREQUENT = 20_000
WINDOW = 6  # places from one word to the other
TIMES = 2  # once may be chance
OFTENER = 16  # than words of their frequency would meet by chance
SIMILARITY = 0.35


def met_together(words: Words, associations: Associations) -> Iterator[Pair]:
    """From a concrete noun to a noun, verb or adjective that it meets more than once, and not by chance."""
    occurrences: Counter[str] = Counter()
    meetings: Counter[Pair] = Counter()
    content: dict[str, bool] = {}
    for synset in words.synsets.values():
        for sentence in synset.definition.split(";"):
            lemmas = [words.lemma(token) for token in re.findall(r"[a-z]+", sentence.lower())]
            content |= {word: _is_content(words, word) for word in lemmas if word not in content}
            kept = [(place, word) for place, word in enumerate(lemmas) if content[word]]
            occurrences.update(word for _, word in kept)
            for (place, word), (other_place, other) in combinations(kept, 2):
                if other_place - place <= WINDOW:
                    meetings[word, other] += 1
                    meetings[other, word] += 1
    for (head, tail), times in meetings.items():
        by_chance = occurrences[head] * occurrences[tail] / occurrences.total()
        is_telling = times >= max(TIMES, OFTENER * by_chance) and words.topic(head) in CONCRETE
        if is_telling and associations.similarity(head, tail) >= SIMILARITY:
            yield words.natural(head) or head, words.natural(tail) or tail


def _is_content(words: Words, word: str) -> bool:
    is_frequent = LEAST_FREQUENT_RANK <= words.frequency(word) < MOST_FREQUENT
    has_meaning = words.parts_of_speech(word)[:1] not in ([], ["r"]) and word not in VAGUE
    return is_frequent and has_meaning and words.in_use(word) and not words.is_name(word)
