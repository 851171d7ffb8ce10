from collections.abc import Callable

import pytest

from relvec.distillation.distiller import Distiller
from relvec.distillation.targets import similarity_loss, vector_loss


def test_the_loss_is_that_of_the_vectors_and_the_weighted_one_of_their_similarities(
    make_distiller: Callable[..., Distiller],
) -> None:
    distiller = make_distiller(similarity_weight=100.0)
    distiller.targets = distiller.fit_targets(show_progress=False)
    vectors, (target, teacher) = distiller.step_vectors(1), distiller.step_targets(1)
    expected = vector_loss(vectors, target) + 100 * similarity_loss(vectors, teacher)
    assert distiller.gradients(1) == pytest.approx(expected.item(), rel=1e-5)
