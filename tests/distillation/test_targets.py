from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from relvec import RelBERT
from relvec.distillation.distiller import LengthBatches
from relvec.distillation.targets import Targets, cosine_correlation, reduction, rotation, similarity_loss, vector_loss
from relvec.model.cached_vectors import ModelVectors
from relvec.similarity import Vectors, cosine

PAIRS = [(head, tail) for head in ("Paris", "cat", "tea", "wine") for tail in ("France", "dog", "cup", "bread")]


def rows(count: int, dim: int, seed: int = 0) -> Vectors:
    return np.random.default_rng(seed).normal(size=(count, dim)).astype(np.float32)


def cosines(vectors: Any) -> Vectors:
    return cosine(vectors, vectors)


def test_vectors_of_a_subspace_keep_their_cosines() -> None:
    vectors = rows(50, 4) @ rows(4, 12, seed=1)
    small = vectors @ reduction(vectors, 4)
    np.testing.assert_allclose(cosines(small), cosines(vectors), atol=1e-5)


def test_the_mean_of_the_vectors_is_kept() -> None:
    vectors = rows(1, 12, seed=1) + np.float32(0.01) * rows(50, 12)
    small = vectors @ reduction(vectors, 1)
    np.testing.assert_allclose(cosines(small), 1.0, atol=1e-3)
    assert small.std() < np.abs(small).mean()


def test_a_wider_student_gets_zeros() -> None:
    vectors = rows(50, 4)
    wide = vectors @ reduction(vectors, 6)
    assert wide.shape == (50, 6)
    np.testing.assert_allclose(wide @ wide.T, vectors @ vectors.T, atol=1e-4)


def test_a_rotation_keeps_cosines_and_comes_nearer() -> None:
    vectors, toward = rows(50, 6), rows(50, 6, seed=1)
    turned = vectors @ rotation(vectors, toward)
    np.testing.assert_allclose(cosines(turned), cosines(vectors), atol=1e-5)
    assert (turned * toward).sum() > (vectors * toward).sum()


def test_targets_have_the_students_dimension_and_start_near_it(
    tiny: RelBERT, small_folder: Path, tmp_path: Path
) -> None:
    student = RelBERT.from_pretrained(small_folder)
    targets = Targets.fit(ModelVectors(tiny, tmp_path), student, PAIRS)
    teacher, target = targets(PAIRS)
    assert (teacher.shape, target.shape) == ((16, 16), (16, 8))
    np.testing.assert_allclose(np.linalg.norm(target, axis=1), 1.0, atol=1e-5)
    assert 0.5 < targets.correlation_kept(PAIRS) <= 1
    own = student.encode(PAIRS, normalize=True)
    unturned = teacher @ reduction(teacher, 8)
    assert (target * own).sum() > (unturned * own).sum()


def test_correlation_of_vectors_that_never_vary_is_zero() -> None:
    assert cosine_correlation(np.ones((4, 2), dtype=np.float32), rows(4, 2)) == 0


def test_losses_are_zero_for_vectors_like_the_teachers_and_follow_their_formulas() -> None:
    student, teacher = torch.from_numpy(rows(5, 4)), torch.from_numpy(rows(5, 4, seed=1))
    assert vector_loss(3 * teacher, teacher).item() == pytest.approx(0, abs=1e-6)
    assert similarity_loss(3 * teacher, teacher).item() == pytest.approx(0, abs=1e-6)
    s, t = student.numpy(), teacher.numpy()
    assert vector_loss(student, teacher).item() == pytest.approx(1 - cosine(s, t).diagonal().mean(), abs=1e-5)
    expected = ((cosines(s) - cosines(t)) ** 2).mean()
    assert similarity_loss(student, teacher).item() == pytest.approx(expected, abs=1e-5)


def test_an_epoch_meets_each_pair_once_in_batches_of_like_length() -> None:
    lengths = [5 + number % 7 for number in range(100)]
    batches = LengthBatches(lengths, size=10, seed=0)
    first = [batches(step) for step in range(10)]
    assert sorted(row for batch in first for row in batch) == list(range(100))
    assert max(max(lengths[row] for row in batch) - min(lengths[row] for row in batch) for batch in first) <= 1
    second = [batches(step) for step in range(10, 20)]
    assert second != first
    assert [batches(step) for step in range(10)] == first
