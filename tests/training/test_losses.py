"""Every loss against its formula, written out with plain loops."""

import math
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from inspect import signature
from statistics import mean
from typing import Any

import pytest
import torch
from torch import Tensor

from relvec.errors import RelvecError
from relvec.training.batch import Batch
from relvec.training.losses import LOSSES, make_loss
from relvec.training.losses.classification import Classification, TripletClassification
from relvec.training.losses.triplet import distances

DIM = 6
T = 0.05
OTHER_CATEGORIES: dict[str, Any] = {"same_category_negatives": False}


def random_batch(seed: int) -> tuple[Tensor, Batch]:
    """Five relations in two categories over a few pairs, so that relations share pairs in every role."""
    generator = torch.Generator().manual_seed(seed)
    rows = 14
    row, relation, is_positive = [], [], []
    for number, positives in enumerate((4, 3, 2, 1, 3)):
        order = torch.randperm(rows, generator=generator).tolist()
        row += [*order[: positives + 2], order[0]]  # the last item is the first pair again
        relation += [number] * (positives + 3)
        is_positive += [True] * positives + [False] * 2 + [True]
    row_of, relation_of = torch.tensor(row), torch.tensor(relation)
    triples = torch.randint(len(row), (40, 3), generator=generator)
    pairs = tuple((f"h{number}", f"t{number}") for number in range(rows))
    encoded = torch.randn(rows, DIM, dtype=torch.float64, generator=generator)
    return encoded[row_of], Batch(pairs, row_of, relation_of, relation_of % 2, torch.tensor(is_positive), triples)


class Items:
    """A batch as lists, and scores as numbers."""

    def __init__(self, vectors: Tensor, batch: Batch) -> None:
        self.vectors: list[list[float]] = vectors.tolist()
        self.row: list[int] = batch.row.tolist()
        self.relation: list[int] = batch.relation.tolist()
        self.category: list[int] = batch.category.tolist()
        self.is_positive: list[bool] = batch.is_positive.tolist()
        self.triples: list[list[int]] = batch.triples.tolist()
        self.all = range(len(self.row))

    def exp_cosine(self, i: int, j: int) -> float:
        u, v = self.vectors[i], self.vectors[j]
        return math.exp(sum(x * y for x, y in zip(u, v, strict=True)) / math.hypot(*u) / math.hypot(*v) / T)

    def positives(self, relation: int) -> list[int]:
        return [k for k in self.all if self.is_positive[k] and self.relation[k] == relation]


def slow_triplet(vectors: Tensor, batch: Batch, margin: float = 1.0) -> float:
    items = Items(vectors, batch)
    terms = []
    for a, p, n in items.triples:
        near, far = math.dist(items.vectors[a], items.vectors[p]), math.dist(items.vectors[a], items.vectors[n])
        terms.append(max(0.0, near - far + margin))
    return mean(terms)


def slow_classification(vectors: Tensor, batch: Batch, weight: list[float]) -> float:
    items = Items(vectors, batch)

    def g(u: list[float], v: list[float]) -> float:
        features = [*u, *v, *(abs(y - x) for x, y in zip(u, v, strict=True))]
        return 1 / (1 + math.exp(-sum(w * x for w, x in zip(weight, features, strict=True))))

    terms = []
    for a, p, n in items.triples:
        same, different = g(items.vectors[a], items.vectors[p]), g(items.vectors[a], items.vectors[n])
        terms.append(-math.log(same) - math.log(1 - different))
    return mean(terms)


def slow_infonce(vectors: Tensor, batch: Batch, positive_in_denominator: bool = True) -> float:
    items = Items(vectors, batch)
    of_relation = []
    for relation in set(items.relation):
        positives = items.positives(relation)
        known = {items.row[i] for i in positives}
        own_hard = [k for k in items.all if items.relation[k] == relation and not items.is_positive[k]]
        others = [k for k in items.all if items.relation[k] != relation and items.is_positive[k]]
        negatives = [k for k in own_hard + others if items.row[k] not in known]
        terms = []
        for i in positives:
            for j in positives:
                if items.row[i] != items.row[j]:
                    positive = items.exp_cosine(i, j)
                    denominator = sum(items.exp_cosine(i, n) for n in negatives)
                    if positive_in_denominator:
                        denominator += positive
                    terms.append(-math.log(positive / denominator))
        if terms:
            of_relation.append(mean(terms))
    return mean(of_relation)


def slow_contrastive(vectors: Tensor, batch: Batch, same_category_negatives: bool = True) -> float:
    items = Items(vectors, batch)
    of_anchor = []
    for i in items.all:
        if not items.is_positive[i]:
            continue
        positives = [p for p in items.positives(items.relation[i]) if items.row[p] != items.row[i]]
        known = {items.row[p] for p in items.positives(items.relation[i])}
        siblings = {items.row[k] for k in items.all if items.is_positive[k] and items.category[k] == items.category[i]}
        negatives = []
        for k in items.all:
            own_hard = items.relation[k] == items.relation[i] and not items.is_positive[k]
            if items.row[k] in known:
                continue
            if same_category_negatives or own_hard or items.row[k] not in siblings:
                negatives.append(k)
        denominator = sum(items.exp_cosine(i, k) for k in positives + negatives)
        if positives:
            of_anchor.append(-mean(math.log(items.exp_cosine(i, p) / denominator) for p in positives))
    return mean(of_anchor)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(
    ("name", "settings", "slow"),
    [
        ("triplet", {}, slow_triplet),
        ("triplet", {"margin": 0.5}, partial(slow_triplet, margin=0.5)),
        ("infonce", {}, slow_infonce),
        ("infoloob", {}, partial(slow_infonce, positive_in_denominator=False)),
        ("contrastive", {}, slow_contrastive),
        ("contrastive", OTHER_CATEGORIES, partial(slow_contrastive, **OTHER_CATEGORIES)),
    ],
)
def test_a_loss_equals_its_written_out_formula(
    name: str, settings: dict[str, Any], slow: Callable[[Tensor, Batch], float], seed: int
) -> None:
    vectors, batch = random_batch(seed)
    assert make_loss(name, DIM, **settings)(vectors, batch).item() == pytest.approx(slow(vectors, batch))


@pytest.mark.parametrize("seed", range(3))
def test_the_classification_loss_equals_its_written_out_formula(seed: int) -> None:
    vectors, batch = random_batch(seed)
    loss = Classification(DIM).double()
    expected = slow_classification(vectors, batch, loss.classifier.weight[0].tolist())
    assert loss(vectors, batch).item() == pytest.approx(expected)


def test_the_papers_loss_is_the_sum_of_triplet_and_classification() -> None:
    vectors, batch = random_batch(0)
    loss = TripletClassification(DIM, margin=0.5).double()
    weight = loss.classification.classifier.weight[0].tolist()
    expected = slow_triplet(vectors, batch, margin=0.5) + slow_classification(vectors, batch, weight)
    assert loss(vectors, batch).item() == pytest.approx(expected)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("encoded", [torch.ones(14, DIM), torch.zeros(14, DIM), 1e4 * torch.eye(14, DIM)])
def test_gradients_are_finite_where_vectors_are_equal_or_extreme(name: str, encoded: Tensor) -> None:
    _, batch = random_batch(0)
    encoded = encoded.clone().requires_grad_()
    make_loss(name, DIM)(encoded[batch.row], batch).backward()
    assert encoded.grad is not None
    assert encoded.grad.isfinite().all()


@pytest.mark.parametrize("name", [name for name in LOSSES if not LOSSES[name].needs_triples])
def test_a_batch_without_negatives_or_second_positives_gives_zero_and_a_finite_gradient(name: str) -> None:
    vectors = torch.eye(3).requires_grad_()
    relation = torch.tensor([0, 1, 1])
    is_positive = torch.tensor([True, True, False])
    batch = Batch((("a", "b"),) * 3, torch.zeros(3).long(), relation, relation, is_positive, torch.empty(0, 3))
    loss = make_loss(name, 3)(vectors, batch)
    loss.backward()
    assert loss.item() == 0
    assert vectors.grad is not None
    assert vectors.grad.isfinite().all()


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "classification"])
def test_relations_in_clusters_have_a_lower_loss_than_scattered_ones(name: str) -> None:
    torch.manual_seed(0)
    relation = torch.arange(4).repeat_interleave(5)
    triples = torch.tensor([[a, p, n] for a, p, n in torch.cartesian_prod(*[torch.arange(20)] * 3).tolist()
                            if a != p and a // 5 == p // 5 != n // 5])  # fmt: skip
    pairs = tuple((f"h{item}", f"t{item}") for item in range(20))
    batch = Batch(pairs, torch.arange(20), relation, relation, torch.ones(20, dtype=torch.bool), triples)
    loss = make_loss(name, DIM)
    assert loss(3 * torch.eye(4, DIM)[relation], batch) < loss(torch.randn(20, DIM), batch)


def test_distances_and_their_gradients_survive_a_large_common_part_of_all_vectors() -> None:
    generator = torch.Generator().manual_seed(0)
    exact = torch.randn(30, 768, generator=generator, dtype=torch.float64) + 20
    exact[1] = exact[0]
    exact[2] = exact[0] + 0.01
    single = exact.float().requires_grad_()
    exact.requires_grad_()
    expected = torch.cdist(exact, exact, compute_mode="donot_use_mm_for_euclid_dist")
    found = distances(single)
    found.sum().backward()
    expected.sum().backward()
    assert single.grad is not None
    assert exact.grad is not None
    torch.testing.assert_close(found.double(), expected, atol=5e-3, rtol=0)
    torch.testing.assert_close(single.grad.double(), exact.grad, atol=1e-3, rtol=0)


@pytest.mark.parametrize("name", ["infonce", "infoloob", "contrastive"])
def test_a_pair_that_is_a_positive_of_the_relation_is_never_its_negative(name: str) -> None:
    relation = torch.tensor([0, 0, 0, 1, 1])
    is_positive = torch.tensor([True, True, False, True, False])
    pairs = (("oak", "tree"), ("rose", "flower"), ("tree", "oak"))
    vectors = torch.randn(3, DIM)
    with_shared = Batch(pairs, torch.tensor([0, 1, 2, 0, 1]), relation, relation, is_positive, torch.empty(0, 3))
    without = Batch(pairs, torch.arange(3), relation[:3], relation[:3], is_positive[:3], torch.empty(0, 3))
    loss = make_loss(name, DIM)
    assert loss(vectors[with_shared.row], with_shared).item() == pytest.approx(loss(vectors, without).item())


@pytest.mark.parametrize("name", [name for name in LOSSES if LOSSES[name].needs_triples])
def test_a_batch_without_the_triples_a_loss_needs_is_an_error(name: str) -> None:
    _, batch = random_batch(0)
    batch = Batch(batch.pairs, batch.row, batch.relation, batch.category, batch.is_positive, batch.triples[:0])
    with pytest.raises(RelvecError, match="no triples; rate more pairs"):
        make_loss(name, DIM)(torch.zeros(len(batch.row), DIM), batch)


def test_the_settings_of_a_loss_are_checked() -> None:
    with pytest.raises(RelvecError, match="loss infonce: There is no setting 'margin'; use one of temperature"):
        make_loss("infonce", DIM, margin=1.0)
    with pytest.raises(RelvecError, match="margin is 0; use a number above 0"):
        make_loss("triplet", DIM, margin=0)


def test_the_list_of_losses_tells_their_defaults_and_needs_no_torch() -> None:
    for name, entry in LOSSES.items():
        parameters = signature(type(make_loss(name, DIM))).parameters.values()
        assert entry.settings == {each.name: each.default for each in parameters if each.name != "dim"}
    code = "import sys, relvec.training.losses; sys.exit('torch' in sys.modules or 'pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_vector_that_is_no_number_shows_in_the_distances() -> None:
    vectors = torch.tensor([[0.0, 0.0], [3.0, 4.0], [float("nan"), 0.0]])
    assert distances(vectors).isnan().any()
