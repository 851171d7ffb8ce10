import json
from pathlib import Path

import pytest

from relvec import RelvecError
from relvec.data.overlap import unordered
from relvec.distillation.pool import FEWEST, HELD_OUT_AT_LEAST, Sources, make_pool


def sources(pairs_file: Path, **changes: object) -> Sources:
    return Sources(**{"files": (str(pairs_file),), "data": ()} | changes)  # type: ignore[arg-type]


def test_both_directions_of_a_pair_are_on_the_same_side(pairs_file: Path) -> None:
    pool = make_pool(sources(pairs_file))
    for side in (pool.train, pool.held_out):
        assert {(tail, head) for head, tail in side} == set(side)
        assert len(set(side)) == len(side)
    assert not {unordered(pair) for pair in pool.train} & {unordered(pair) for pair in pool.held_out}
    assert len(pool.held_out) == 2 * HELD_OUT_AT_LEAST


def test_one_direction_leaves_the_pairs_as_they_are(pairs_file: Path) -> None:
    pool = make_pool(sources(pairs_file, both_directions=False, shuffled=0))
    written = {tuple(line.split(":")) for line in pairs_file.read_text().splitlines()}
    assert {*pool.train, *pool.held_out} == written


def test_a_pair_given_in_both_directions_is_not_held_out_in_one(tmp_path: Path) -> None:
    path = tmp_path / "pairs.txt"
    path.write_text("\n".join(f"a{n}:b{n}\nb{n}:a{n}\nA{n}:B{n}" for n in range(20)))
    pool = make_pool(sources(path, both_directions=False, shuffled=0))
    assert not {unordered(pair) for pair in pool.train} & {unordered(pair) for pair in pool.held_out}


def test_re_paired_words_are_no_given_pair(pairs_file: Path) -> None:
    given = make_pool(sources(pairs_file, shuffled=0))
    mixed = make_pool(sources(pairs_file, shuffled=0.5))
    known = {unordered(pair) for pair in (*given.train, *given.held_out)}
    new = {unordered(pair) for pair in (*mixed.train, *mixed.held_out)} - known
    assert len(new) == mixed.counts["re-paired_words"] == round(0.5 * len(known))
    words = {word for pair in known for word in pair}
    assert all(set(pair) <= words and pair[0] != pair[1] for pair in new)


def test_the_limit_leaves_out_wordnet_first(pairs_file: Path, tmp_path: Path) -> None:
    lines = [f"{n:08} 00 n 01 {chr(97 + n)}{chr(97 + n)} 0 001 @ {n + 1:08} n 0000 | x" for n in range(20)]
    (tmp_path / "data.noun").write_text("\n".join(lines))
    given = make_pool(sources(pairs_file)).counts["given_pairs"]
    for limit, expected in ((given + 5, (given, 5)), (given - 5, (given - 5, 0)), (1000, (given, 19))):
        counts = make_pool(sources(pairs_file, wordnet=tmp_path, limit=limit)).counts
        assert (counts["given_pairs"], counts["pairs_of_WordNet"]) == expected


def test_the_seed_decides_the_pool(pairs_file: Path) -> None:
    assert make_pool(sources(pairs_file), seed=1) == make_pool(sources(pairs_file), seed=1)
    assert make_pool(sources(pairs_file), seed=1) != make_pool(sources(pairs_file), seed=2)


def test_benchmark_pairs_are_left_out_in_any_form(pairs_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "analogy" / "mine" / "test.jsonl"
    path.parent.mkdir(parents=True)
    question = {"stem": ["france", "Paris"], "choice": [["cups", "teas"], ["wine", "baker"]], "answer": 0}
    path.write_text(json.dumps(question))
    # So many re-pairings that wine:baker would be among them.
    pool = make_pool(sources(pairs_file, shuffled=1.2, benchmarks=tmp_path))
    left = {unordered(pair) for pair in (*pool.train, *pool.held_out)}
    assert not left & {("france", "paris"), ("cup", "tea"), ("baker", "wine")}
    assert ("france", "tokyo") in left


def test_the_bundled_pairs_are_all_those_of_the_relations_that_are_not_kept_for_testing() -> None:
    from relvec.data.overlap import unordered, without_testing
    from relvec.data.sources import load

    pool = make_pool(Sources(shuffled=0))
    trained = {unordered(pair) for relation in without_testing(load("bundled")) for pair in relation.pairs}
    assert {unordered(pair) for pair in (*pool.train, *pool.held_out)} == trained


def test_scrambled_pairs_are_no_positives() -> None:
    from relvec.data.sources import load

    plain, more = make_pool(Sources(shuffled=0)), make_pool(Sources(shuffled=0, scrambled=4))
    added = {*more.train, *more.held_out} - {*plain.train, *plain.held_out}
    assert len(added) > 1000
    assert not added & {pair for relation in load("bundled") for pair in relation.positives}


def test_no_relation_that_is_kept_for_testing_is_scrambled(tmp_path: Path) -> None:
    lines = ""
    for name in ("kept", "trained"):
        pairs = ", ".join(f'"{name}head{n}:{name}tail{n}"' for n in range(30))
        lines += f'[[relation]]\nname = "{name}"\nheld_out = {str(name == "kept").lower()}\npositives = [{pairs}]\n'
    (tmp_path / "mine.toml").write_text(lines)
    pool = make_pool(Sources(data=(str(tmp_path / "mine.toml"),), scrambled=20, shuffled=0))
    words = {word for pair in (*pool.train, *pool.held_out) for word in pair}
    assert words == {f"trained{side}{n}" for side in ("head", "tail") for n in range(30)}


def test_a_card_names_files_without_their_folders(pairs_file: Path) -> None:
    described = sources(pairs_file, data=("bundled",), wordnet="somewhere/dict").described()
    assert described.startswith("bundled (relvec's own")
    assert "; pairs.txt; WordNet; " in described
    assert str(pairs_file.parent) not in described


def test_too_few_pairs_are_refused(tmp_path: Path) -> None:
    (tmp_path / "pairs.txt").write_text("a:b\nc:d")
    with pytest.raises(RelvecError, match=f"too little to learn from: 2 pairs where {FEWEST} are needed; give more"):
        make_pool(sources(tmp_path / "pairs.txt"))
    with pytest.raises(RelvecError, match="0 pairs where"):
        make_pool(Sources(data=()))
