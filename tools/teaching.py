"""Prototypes that learn: moved so that training pairs are named as they should be, and as a teacher names them.

Many relations are alike, and one pair may stand in several. What a larger model says of a pair tells which.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from relvec.data.rated import RatedRelation, split
from relvec.naming.building import Encode, calibrated, rows_both_ways
from relvec.naming.catalogue import Catalogue, Prototypes, scores_of
from relvec.pairs import Pair
from relvec.similarity import Vectors

TRUE_SHARE = 0.5
"""How much of what is learned is the relation that a pair has in the data; the rest is what the teacher says."""

LEARNING_RATE = 0.05
EPOCHS = 4
BATCH_SIZE = 512

Said = Callable[[Sequence[Pair]], NDArray[np.float32]]
"""What a teacher says of pairs: the probability of each row of the prototypes."""


def with_learned_prototypes(
    catalogue: Catalogue,
    relations: Sequence[RatedRelation],
    encode: Encode,
    said: Said,
    *,
    groups: Sequence[Mapping[str, Any]] = (),
    seed: int = 0,
) -> Catalogue:
    """The catalogue with learned prototypes, calibrated anew; `relations` and `groups` are those it was built of."""
    trained = split(relations, "train")
    pairs = [pair for relation in trained for pair in relation.positives]
    labels = np.repeat(np.arange(len(trained)), [len(relation.positives) for relation in trained])
    both_ways = [*pairs, *(pair[::-1] for pair in pairs)]
    learned = learned_prototypes(
        catalogue, catalogue.space(encode(both_ways)), rows_both_ways(relations, labels), said(both_ways), seed
    )
    return calibrated(replace(catalogue, prototypes=learned), relations, encode, groups)


def learned_prototypes(
    catalogue: Catalogue, points: Vectors, rows: NDArray[np.int64], said: NDArray[np.float32], seed: int = 0
) -> Prototypes:
    """The prototypes with the means that best predict rows and what was said, from points [pairs, directions]."""
    prototypes, generator = catalogue.prototypes, torch.Generator().manual_seed(seed)
    means = torch.tensor(prototypes.means, requires_grad=True)
    targets = torch.from_numpy((1 - TRUE_SHARE) * said)
    targets[torch.arange(len(rows)), torch.from_numpy(rows)] += TRUE_SHARE
    optimizer = torch.optim.Adam([means], lr=LEARNING_RATE)
    orders = [torch.randperm(len(rows), generator=generator) for _ in range(EPOCHS)]
    batches = [batch for order in orders for batch in order.split(BATCH_SIZE)]
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / len(batches))
    certainty = [torch.from_numpy(each) for each in prototypes.certainty(catalogue.space.between)]
    for batch in batches:
        scores = scores_of(torch.from_numpy(points[batch]), means, *certainty) / catalogue.temperature
        loss = torch.nn.functional.cross_entropy(scores, targets[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return replace(prototypes, means=means.detach().numpy())
