from dataclasses import replace

import pytest
import torch

from relvec.data.rated import RatedRelation
from relvec.learned_prompts.candidates import SuccessiveHalving
from relvec.learned_prompts.objective import PromptObjective


@pytest.fixture
def halving(relations: list[RatedRelation]) -> SuccessiveHalving:
    return SuccessiveHalving(PromptObjective(relations, "train"))


def test_each_round_has_the_pairs_of_the_one_before_and_the_last_has_all(
    halving: SuccessiveHalving, relations: list[RatedRelation]
) -> None:
    assert halving.relations == [4, 8, len(relations)]
    assert [row for rows in halving.new_rows for row in rows] == list(range(len(halving.pairs)))
    assert set(halving.pairs) == set(PromptObjective(relations, "train").pairs)


def test_the_losses_by_relation_have_the_loss_as_their_mean(relations: list[RatedRelation]) -> None:
    objective = PromptObjective(relations, "train")
    vectors = torch.randn(len(objective.pairs), 4, generator=torch.Generator().manual_seed(0))
    assert float(objective.by_relation(vectors).mean()) == pytest.approx(float(objective.loss(vectors)), rel=1e-5)


def test_a_relation_counts_as_anchor_and_as_negative(relations: list[RatedRelation]) -> None:
    objective = PromptObjective(relations, "train")
    vectors = torch.randn(len(objective.pairs), 4, generator=torch.Generator().manual_seed(0))
    batch, terms = objective._batch, objective._terms(vectors)
    expected = torch.zeros(len(relations))
    for term, (anchor, _, negative) in zip(terms, batch.triples.tolist(), strict=True):
        for item in (anchor, negative):
            expected[batch.relation[item]] += term / 2
    scale = len(relations) / objective.triples
    torch.testing.assert_close(objective.by_relation(vectors), scale * expected, rtol=1e-3, atol=1e-5)


def test_the_last_round_is_judged_by_the_loss_itself(
    halving: SuccessiveHalving, relations: list[RatedRelation]
) -> None:
    objective = PromptObjective(relations, "train")
    vectors = torch.randn(len(halving.pairs), 4, generator=torch.Generator().manual_seed(0))
    order = torch.tensor([halving.pairs.index(pair) for pair in objective.pairs])
    assert halving.losses(halving.last, vectors) == [float(objective.loss(vectors[order]))]


def test_who_is_worse_on_every_relation_drops_out_and_who_is_worse_on_some_goes_on(halving: SuccessiveHalving) -> None:
    leader = [0.5, 0.6, 0.7, 0.5, 0.6, 0.7]
    worse = [loss + 0.1 for loss in leader]
    undecided = [loss + 0.1 * (-1) ** place + 0.01 for place, loss in enumerate(leader)]
    assert halving.survivors(0, worse, {1: worse, 2: leader, 3: undecided}) == [2, 3]
    assert halving.survivors(0, leader, {1: worse, 3: undecided}) == [3]
    assert halving.survivors(0, leader, {1: worse}) == []


@pytest.mark.parametrize(("candidates", "left"), [(2, 2), (3, 3), (5, 3), (6, 3), (7, 4), (50, 25)])
def test_of_many_that_are_close_the_better_half_goes_on_and_three_at_least(
    relations: list[RatedRelation], candidates: int, left: int
) -> None:
    more = [replace(relation, name=f"{relation.name} {copy}") for copy in range(3) for relation in relations]
    halving = SuccessiveHalving(PromptObjective(more, "train"))
    assert halving.relations[:3] == [4, 8, 16]
    for number, seen in enumerate(halving.relations[:-1]):
        losses = {name: [0.5 + name / 1000, *([0.7, 0.5] * seen)[1:seen]] for name in range(candidates, 0, -1)}
        assert halving.survivors(number, [0.9] * seen, losses) == list(range(left, 0, -1))


def test_the_last_round_has_one_winner_and_of_equals_the_first(halving: SuccessiveHalving) -> None:
    assert halving.survivors(halving.last, [0.5], {5: [0.5], 6: [0.4], 7: [0.4]}) == [6]


def test_no_candidate_wins_that_does_not_lower_the_loss(halving: SuccessiveHalving) -> None:
    assert halving.survivors(halving.last, [0.4], {6: [0.4], 7: [0.5]}) == []


def test_what_is_not_a_number_is_behind_everything_else(halving: SuccessiveHalving) -> None:
    vectors = torch.zeros(len(halving.pairs), 4)
    vectors[0] = torch.nan
    assert halving.losses(halving.last, vectors) == [torch.inf]
    assert halving.survivors(halving.last, [0.5], {5: [torch.inf], 6: [0.4]}) == [6]
    losses = halving.losses(0, vectors)
    assert torch.inf in losses
    assert halving.survivors(0, [0.6] * 4, {5: losses, 6: [0.5, 0.7, 0.5, 0.6]}) == [6]


def test_few_relations_make_a_single_round(relations: list[RatedRelation]) -> None:
    assert SuccessiveHalving(PromptObjective(relations[:4], "train")).last == 0
