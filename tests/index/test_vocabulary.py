import gc
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relvec import RelvecError
from relvec.index.vocabulary import PairVocabulary

PAIRS = [("Paris", "France"), ("ice cream", "cone"), ("france", "wine"), ("a_b", "東京")]


def test_pairs_and_relations_survive_a_file(tmp_path: Path) -> None:
    PairVocabulary.of(PAIRS, ["capital", "", "product", "capital"]).write(tmp_path / "pairs.npz")
    again = PairVocabulary.read(tmp_path / "pairs.npz")
    assert again.pairs() == PAIRS
    assert again.all_relations() == ["capital", "", "product", "capital"]


def test_a_line_break_in_a_relation_does_not_move_the_others(tmp_path: Path) -> None:
    PairVocabulary.of(PAIRS, ["capital\n of", " ", "product", "b"]).write(tmp_path / "pairs.npz")
    assert PairVocabulary.read(tmp_path / "pairs.npz").all_relations() == ["capital of", "", "product", "b"]


@pytest.mark.parametrize("relation", [7, "\ud800"])
def test_a_relation_that_is_not_text_is_refused(relation: Any) -> None:
    with pytest.raises(RelvecError, match=r"^The relation: .* is not"):
        PairVocabulary.of(PAIRS[:1], [relation])


def test_a_word_is_found_on_either_side_whatever_its_case() -> None:
    pairs = PairVocabulary.of(PAIRS)
    assert pairs.with_word(["FRANCE"]).tolist() == [True, False, True, False]
    assert pairs.with_head(["france"]).tolist() == [False, False, True, False]
    assert pairs.with_tail(["France"]).tolist() == [True, False, False, False]
    assert not pairs.with_word(["ice"]).any()


def test_joined_and_kept_rows_keep_their_relations() -> None:
    pairs = PairVocabulary.of(PAIRS[:2], ["capital", ""]).joined(PairVocabulary.of(PAIRS[2:], ["product", "capital"]))
    assert pairs.all_relations() == ["capital", "", "product", "capital"]
    kept = pairs.without(np.flatnonzero(~pairs.with_relation(["capital"])))
    assert (kept.pairs(), kept.words) == ([PAIRS[0], PAIRS[3]], ["Paris", "a_b", "France", "東京"])


def test_a_broken_table_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "array.npz").open("wb") as file:
        np.save(file, np.zeros(3))
    (tmp_path / "pairs.npz").write_bytes(b"PK\x03\x04 no more")
    for name in ("pairs.npz", "array.npz"):
        with pytest.raises(RelvecError, match="not a complete table of pairs"):
            PairVocabulary.read(tmp_path / name)


def test_threads_that_read_do_not_disturb_each_other(tmp_path: Path) -> None:
    """Garbage collections that run Python code let threads change places in the middle of numpy's parsing."""
    path, problems = tmp_path / "pairs.npz", []
    PairVocabulary.of([("Paris", "France")], [""]).write(path)

    def collected(_phase: str, _details: dict[str, int]) -> None:
        sum(range(200))

    def read() -> None:
        for _ in range(500):
            try:
                PairVocabulary.read(path)
            except Exception as error:
                problems.append(error)

    threshold, interval = gc.get_threshold(), sys.getswitchinterval()
    gc.callbacks.append(collected)
    try:
        gc.set_threshold(20)
        sys.setswitchinterval(1e-6)
        threads = [threading.Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        gc.callbacks.remove(collected)
        gc.set_threshold(*threshold)
        sys.setswitchinterval(interval)
    assert problems == []
