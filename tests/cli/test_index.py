"""relvec index, neighbours and complete, as users run them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from relvec.index import storage

Relvec = Callable[..., Any]
Refused = Callable[..., str]

TABLE = (
    "head\ttail\trelation\nParis\tFrance\tcapital\nTokyo\tJapan\tcapital\ncup\ttea\t\ncats\tdogs\t\nice cream\tcone\t\n"
)


@pytest.fixture
def built(relvec: Relvec, tiny_folder: Path, tmp_path: Path) -> Path:
    (tmp_path / "pairs.tsv").write_text(TABLE)
    result = relvec("index", "build", tmp_path / "pairs.tsv", "-o", tmp_path / "my.index", "-m", tiny_folder)
    assert (result.code, result.out) == (0, "")
    assert "5 pairs, flat" in result.err
    assert "pairs/s" in result.err
    return tmp_path / "my.index"


def test_neighbours_are_printed_for_people_and_machines(relvec: Relvec, tiny_folder: Path, built: Path) -> None:
    options = ("--index", built, "-m", tiny_folder)
    result = relvec("neighbours", "wine:bread", "Paris:Japan", "-k", 2, *options)
    assert result.code == 0
    assert result.out.splitlines()[0] == "pair\tscore"
    assert len(result.out.splitlines()) == 3
    answer = json.loads(relvec("neighbours", "Paris:France", "--json", *options).out)
    assert answer["query"] == ["Paris:France"]
    assert {"pair": "Tokyo:Japan", "head": "Tokyo", "tail": "Japan", "relation": "capital"}.items() <= {
        key: value for row in answer["neighbours"] if row["pair"] == "Tokyo:Japan" for key, value in row.items()
    }.items()
    labelled = relvec("neighbours", "cup:tea", "--relation", "capital", *options).out
    assert sorted(line.split("\t")[0] for line in labelled.splitlines()[1:]) == ["Paris:France", "Tokyo:Japan"]


def test_shared_words_are_a_flag(relvec: Relvec, tiny_folder: Path, built: Path) -> None:
    options = ("neighbours", "Paris:tea", "--index", built, "-m", tiny_folder)
    assert "cup:tea" not in relvec(*options).out
    assert "cup:tea" in relvec(*options, "--shared-words").out


@pytest.mark.parametrize(
    "analogy",
    [
        ("Paris:France", "::", "Tokyo:?"),
        ("Paris:France", "::", "Tokyo"),
        ("Paris:France", "Tokyo:?"),
        ("Paris:France", "Tokyo"),
        ("Paris:France::Tokyo:",),
        ("Paris", ":", "France", "::", "Tokyo", ":", "?"),
    ],
)
def test_complete_takes_an_analogy_in_several_spellings(
    relvec: Relvec, tiny_folder: Path, built: Path, analogy: tuple[str, ...]
) -> None:
    answer = json.loads(relvec("complete", *analogy, "--index", built, "-m", tiny_folder, "-k", 2, "--json").out)
    assert (answer["pair"], answer["head"], len(answer["words"])) == ("Paris:France", "Tokyo", 2)
    table = relvec("complete", *analogy, "--index", built, "-m", tiny_folder).out
    assert table.startswith("word\tscore\n")
    assert "Japan" in table


def test_pairs_are_added_and_removed(relvec: Relvec, tiny_folder: Path, built: Path, tmp_path: Path) -> None:
    (tmp_path / "more.txt").write_text("wine:bread\nParis:France\n")
    assert "1 pair added" in relvec("index", "add", built, tmp_path / "more.txt", "-m", tiny_folder).err
    assert "2 pairs removed" in relvec("index", "remove", built, tmp_path / "more.txt").err
    facts = json.loads(relvec("index", "info", built, "--json").out)
    assert (facts["pairs"], facts["kind"], facts["dimensions"], facts["model"]) == (4, "flat", 16, tiny_folder.name)
    assert facts["bytes_a_pair"] == round(facts["bytes"] / 4, 1)
    assert "bytes a pair" in relvec("index", "info", built).out


def test_labels_that_are_left_out_are_counted(relvec: Relvec, tiny_folder: Path, built: Path, tmp_path: Path) -> None:
    (tmp_path / "two.csv").write_text("subject,predicate,object\nRome,capital of,Italy\nRome,in,Italy\nRome,,Italy\n")
    result = relvec("index", "build", tmp_path / "two.csv", "-o", tmp_path / "two.index", "-m", tiny_folder)
    assert "1 relation label left out: a pair keeps the first that it is given" in result.err
    assert json.loads(relvec("index", "info", tmp_path / "two.index", "--json").out)["relations"] == ["capital of"]
    assert "left out" not in relvec("index", "add", built, tmp_path / "pairs.tsv", "-m", tiny_folder).err


def test_another_model_than_that_of_the_shards_is_refused(
    relvec: Relvec, refused: Refused, tiny_folder: Path, tiny_folders: Callable[[str], Path], tmp_path: Path
) -> None:
    (tmp_path / "pairs.tsv").write_text(TABLE)
    relvec("embed", tmp_path / "pairs.tsv", "-o", tmp_path / "vectors", "-m", tiny_folder, "--workers", 1)
    build = ("index", "build", tmp_path / "vectors", "-o", tmp_path / "my.index")
    assert "vectors made by a model other than tiny-bert" in refused(*build, "-m", tiny_folders("bert"))
    assert "5 pairs" in relvec(*build, "-m", tiny_folder).err
    assert "5 pairs (finished before)" in relvec(*build).err


def test_the_pairs_alone_make_an_index_of_another_model(
    relvec: Relvec, tiny_folders: Callable[[str], Path], built: Path, tmp_path: Path
) -> None:
    assert "5 pairs ->" in relvec("index", "export", built, "-o", tmp_path / "again.tsv").err
    other = relvec("index", "build", tmp_path / "again.tsv", "-o", tmp_path / "b.index", "-m", tiny_folders("bert"))
    assert other.code == 0
    facts = [json.loads(relvec("index", "info", folder, "--json").out) for folder in (built, tmp_path / "b.index")]
    assert facts[0]["pairs"] == facts[1]["pairs"]
    assert facts[0]["relations"] == facts[1]["relations"] == ["capital"]


def test_the_bundled_index_is_the_one_that_is_meant(
    relvec: Relvec, built: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(storage, "BUNDLED", built)
    assert json.loads(relvec("index", "info", "--json").out)["pairs"] == 5
    assert "5 pairs" in relvec("index", "export", "-o", tmp_path / "pairs-alone.tsv").err


def test_vectors_are_exported_and_imported(relvec: Relvec, tiny_folder: Path, built: Path, tmp_path: Path) -> None:
    file = tmp_path / "vectors.npz"
    assert "5 pairs, 16 dimensions" in relvec("index", "export", built, "-o", file).err
    result = relvec("index", "import", file, "-o", tmp_path / "again.index", "--model", tiny_folder)
    assert "5 pairs, flat" in result.err
    query = ("neighbours", "wine:bread", "-m", tiny_folder, "--json", "--index")
    rows = [json.loads(relvec(*query, folder).out)["neighbours"] for folder in (built, tmp_path / "again.index")]
    assert [row["pair"] for row in rows[0]] == [row["pair"] for row in rows[1]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["neighbours", "Paris"], "'Paris' has no colon; write head:tail"),
        (["neighbours", "a:b"], "is not an index folder (it has no meta.json); make one with `relvec index build`"),
        (["neighbours", "a:b", "--index", "FOLDER"], "is not an index folder"),
        (["neighbours", "a:b", "--index", "INDEX", "-m", "TINY", "-k", "0"], "Invalid value for"),
        (["neighbours", "a:b", "--index", "INDEX", "-m", "OTHER"], "vectors made by a model other than tiny-bert"),
        (["neighbours", "a:b", "--index", "INDEX", "-m", "TINY", "--relation", "x"], "No pair of this index has"),
        (["complete", "a:b", "::", "c:d"], "'c:d' leaves nothing open; write it as c:?"),
        (["complete", "a:b"], "is not an open analogy; write a:b :: c:?"),
        (["complete", "a", "::", "c:?"], "'a' has no colon"),
        (["complete", "a:b", "::", ":?"], "is empty"),
        (["index", "build", "EMPTY", "-o", "new.index"], "holds no pair"),
        (["index", "build", "PAIRS", "-o", "new.index", "--kind", "magic"], "Unknown index kind 'magic'"),
        (["index", "build", "PAIRS", "-o", "new.index", "--kind", "ivfpq", "-m", "TINY"], "needs at least 256 pairs"),
        (
            ["index", "build", "PAIRS", "-o", "INDEX", "-m", "TINY"],
            "belongs to a run with another base",
        ),
        (
            ["index", "import", "VECTORS", "-o", "INDEX", "-m", "TINY"],
            "belongs to a run with another base",
        ),
        (["index", "add", "FOLDER", "PAIRS"], "is not an index folder"),
        (["index", "remove", "FOLDER", "PAIRS"], "is not an index folder"),
        (["index", "remove", "INDEX", "TABLE"], "An index cannot be empty"),
        (["index", "info", "FOLDER"], "is not an index folder"),
        (["index", "import", "nowhere.npz", "-o", "new.index"], "There is no file nowhere.npz"),
        (["neighbours", "a:b", "--index", "INDEX", "-m", "TINY", "--rerank", "3"], "rerank 10 or more, or 0 for none"),
        (["index", "export", "INDEX", "-o", "v.doc"], "end its name in .npz"),
        (["index", "export", "INDEX", "-o", "v.npy"], "end its name in .npz, .jsonl, .parquet, .txt, .bin."),
        (["index", "export", "INDEX", "-o", "nowhere/v.tsv"], "There is no folder nowhere"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    refused: Refused,
    tiny_folder: Path,
    tiny_folders: Callable[[str], Path],
    built: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(storage, "BUNDLED", tmp_path / "bundled")
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty.txt").write_text("\n")
    (tmp_path / "one.txt").write_text("Paris:France\n")
    places = {"FOLDER": "folder", "EMPTY": "empty.txt", "PAIRS": "one.txt", "TABLE": "pairs.tsv", "INDEX": str(built)}
    places["VECTORS"] = "one.npz"
    (tmp_path / "one.npz").touch()
    models = {"TINY": str(tiny_folder), "OTHER": str(tiny_folders("bert"))}
    assert message in refused(*({**places, **models}.get(argument, argument) for argument in arguments))
    assert not (tmp_path / "new.index").exists()
    assert not list(tmp_path.glob("v.*"))


def test_the_cache_tells_what_it_holds_and_is_emptied(relvec: Relvec, built: Path, tiny_folder: Path) -> None:
    (space,) = json.loads(relvec("cache", "info", "--json").out)
    assert (space["what"], space["of"], space["entries"]) == ("vectors", tiny_folder.name, 5)
    assert relvec("cache", "info").out.splitlines()[1] == f"vectors\t{tiny_folder.name}\t5\t0.0"
    assert "5 entries, 320 bytes removed" in relvec("cache", "clear").err
    assert json.loads(relvec("cache", "info", "--json").out) == []
