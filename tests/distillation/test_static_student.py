from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from relvec import RelBERT
from relvec.distillation import distill
from relvec.distillation.pool import Sources, make_pool
from relvec.distillation.settings import DistillationSettings, StaticSettings
from relvec.distillation.static_student import StaticDistiller
from relvec.errors import RelvecError
from relvec.model.cached_vectors import ModelVectors
from relvec.model.static_model import TABLE
from relvec.similarity import Vectors, cosine

WORDS = ("Paris", "France", "Tokyo", "Japan", "wine", "cup", "tea", "bread", "city")
QUICK: dict[str, Any] = {"epochs": 40, "batch_size": 32, "evaluate_every": 20}
SMALL: dict[str, Any] = {"words": 16, "pieces": 60, "word_dim": 8, "hidden": 32, "dim": 12}

Make = Callable[..., StaticDistiller]


@pytest.fixture
def make(tiny_folder: Path, pairs_file: Path, tmp_path: Path) -> Make:
    def made(output: str = "static", word_vectors: Path | None = None, **changes: Any) -> StaticDistiller:
        teacher = ModelVectors(RelBERT.from_pretrained(tiny_folder, pooling="mask"), tmp_path / "cache")
        pool = make_pool(Sources(files=(str(pairs_file),)))
        settings = StaticSettings(**QUICK | SMALL | changes)
        return StaticDistiller(teacher, pool, settings, tmp_path / output, word_vectors=word_vectors, data="my pairs")

    return made


def test_a_static_student_comes_nearer_to_its_teacher_and_loads(make: Make, tmp_path: Path) -> None:
    distiller = make()
    course = distiller.fit()
    assert course.best["correlation"] > course.first["correlation"]
    assert course.loss[distiller.steps] < course.loss[1] / 2
    student = RelBERT.from_pretrained(tmp_path / "static")
    pairs = distiller.pool.train[:5]
    trained = distiller._vectors(distiller.terms.numbers(pairs), np.zeros((5, 2), dtype=bool)).detach().numpy()
    assert np.diag(cosine(student.encode(pairs), trained)).min() > 0.999
    assert student.training_record["recipe"]["training_pairs"] == len(distiller.pool.train)


def test_a_killed_run_ends_as_an_undisturbed_one(make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    make("whole").fit()
    killed = make("killed")
    step = killed.step
    monkeypatch.setattr(killed, "step", lambda number: step(number) if number < 30 else pytest.fail("killed"))
    with pytest.raises(pytest.fail.Exception):
        killed.fit()
    make("killed").fit()
    whole, resumed = (RelBERT.from_pretrained(tmp_path / name) for name in ("whole", "killed"))
    assert whole.fingerprint == resumed.fingerprint


def test_rare_words_are_read_in_pieces_while_they_are_trained(make: Make) -> None:
    terms = make(words=4).terms
    rows, starts = terms.bags(terms.numbers([("Paris", "France")])[0], np.array([True, True]))
    pieces = [terms.vocabulary[row] for row in rows]
    first, second = pieces[: starts[1]], pieces[starts[1] :]
    assert "".join(first).replace("##", "") == "paris"
    assert "".join(second).replace("##", "") == "france"


def test_the_share_of_words_read_in_pieces_is_that_of_the_settings(make: Make) -> None:
    read = []
    for share in (0, 1):
        distiller = make(piece_share=share)
        numbers = distiller.train_terms[distiller._rows(1)]
        read.append(distiller.step_vectors(1))
        assert torch.equal(read[-1], distiller._vectors(numbers, np.full(numbers.shape, share == 1)))
    assert not torch.equal(*read)


def written(path: Path, vectors: Vectors) -> Path:
    path.parent.mkdir(exist_ok=True)
    lines = (f"{word.lower()} {' '.join(map(str, row))}" for word, row in zip(WORDS, vectors, strict=True))
    path.write_text("\n".join(lines))
    return path


def test_other_word_vectors_are_another_job_and_the_same_ones_elsewhere_are_not(make: Make, tmp_path: Path) -> None:
    vectors = np.random.default_rng(0).normal(size=(len(WORDS), 5)).astype(np.float32)
    first, other = written(tmp_path / "glove.txt", vectors), written(tmp_path / "other" / "glove.txt", 2 * vectors)
    elsewhere = written(tmp_path / "other" / "renamed.txt", vectors)
    jobs = [make(word_vectors=path).job for path in (first, other, elsewhere)]
    assert jobs[0] == jobs[2] != jobs[1]


def test_known_word_vectors_are_where_the_table_starts(make: Make, tmp_path: Path) -> None:
    vectors = np.random.default_rng(0).normal(size=(len(WORDS), 5)).astype(np.float32)
    distiller = make(word_vectors=written(tmp_path / "glove.txt", vectors), words=100)
    row_of = {word: row for row, word in enumerate(distiller.terms.vocabulary)}
    rows = distiller.weights[TABLE].detach().numpy()[[row_of[word.lower()] for word in WORDS]]
    wanted = cosine(*[vectors - vectors.mean(axis=0)] * 2)
    assert np.abs(cosine(rows[:, :5], rows[:, :5]) - wanted).max() < 1e-4


def test_word_vectors_of_another_language_are_refused(make: Make, tmp_path: Path) -> None:
    (tmp_path / "glove.txt").write_text("Kaffee 0.1 0.2\nBrot 0.3 0.1\ncat 0.2 0.2\n")
    with pytest.raises(RelvecError, match=r"know 1 of the \d+ words to learn; give a file of their language"):
        make(word_vectors=tmp_path / "glove.txt", words=100)


def test_a_static_student_takes_no_adapter(pairs_file: Path, tiny_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(RelvecError, match="A static student has no prompt and no adapter"):
        distill(
            tiny_folder,
            "static",
            tmp_path / "static",
            Sources(files=(str(pairs_file),)),
            DistillationSettings(lora_rank=4),
        )
