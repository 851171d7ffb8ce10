"""Nearest neighbours among many pairs (section 6.3 of the paper), and open analogies.

>>> from relvec import RelBERT
>>> from relvec.index import PairIndex, complete
>>> model = RelBERT.from_pretrained(tiny_model)
>>> index = PairIndex.of(model, [("Tokyo", "Japan"), ("cup", "tea"), ("cats", "dogs")])
>>> [pair for pair, _ in index.most_similar(model, ("Paris", "France"), topn=1)]
[('cup', 'tea')]
"""

from relvec.index.building import build_index, export_index, export_pairs, import_index, index_shards
from relvec.index.completion import complete
from relvec.index.pair_index import Neighbour, PairIndex

__all__ = [
    "Neighbour",
    "PairIndex",
    "build_index",
    "complete",
    "export_index",
    "export_pairs",
    "import_index",
    "index_shards",
]
