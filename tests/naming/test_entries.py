"""The groups of bundled relations that are one entry."""

import re
from collections import Counter

from relvec.data.sources import load
from relvec.naming.entries import bundled_groups, entries_of


def test_every_grouped_relation_is_a_bundled_one_and_in_one_group() -> None:
    grouped = Counter(name for group in bundled_groups() for name in [*group["relations"], *group.get("reversed", ())])
    names = {relation.name for relation in load("bundled")}
    assert set(grouped) <= names
    assert set(grouped.values()) == {1}
    assert not names & {group["name"] for group in bundled_groups()}


def test_every_entry_is_said_with_both_words() -> None:
    for entry in entries_of(load("bundled"), bundled_groups()).listed:
        assert {"X", "Y"} <= set(re.findall(r"\w+", entry.sentence)), entry.name
