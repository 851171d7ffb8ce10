import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from relvec import RelationEmbedder, RelBERT

PAIRS = [("cat", "animal"), ("rose", "flower"), ("oak", "tree"), ("hot", "cold"), ("big", "small"), ("up", "down")]
LABELS = ["isa"] * 3 + ["opposite"] * 3


@pytest.fixture
def embedder(tiny_folder: Path) -> RelationEmbedder:
    return RelationEmbedder(str(tiny_folder))


def test_it_gives_the_models_vectors(embedder: RelationEmbedder, tiny: RelBERT) -> None:
    np.testing.assert_allclose(embedder.fit_transform(PAIRS), tiny.encode(PAIRS), atol=1e-6)
    np.testing.assert_allclose(embedder.transform(pd.DataFrame(PAIRS)), tiny.encode(PAIRS), atol=1e-6)


def test_both_directions_stand_side_by_side(embedder: RelationEmbedder, tiny: RelBERT) -> None:
    vectors = embedder.set_params(both_directions=True).fit_transform(PAIRS)
    backward = tiny.encode([pair[::-1] for pair in PAIRS])
    np.testing.assert_allclose(vectors, np.hstack([tiny.encode(PAIRS), backward]), atol=1e-5)
    assert len(embedder.get_feature_names_out()) == vectors.shape[1]


def test_a_pickle_holds_the_name_not_the_weights(embedder: RelationEmbedder) -> None:
    expected = embedder.fit_transform(PAIRS)
    pickled = pickle.dumps(embedder)
    assert len(pickled) < 2000
    np.testing.assert_array_equal(pickle.loads(pickled).transform(PAIRS), expected)


def test_clones_have_the_same_settings_and_share_the_model(embedder: RelationEmbedder, tiny: RelBERT) -> None:
    copy = clone(embedder.set_params(normalize=True).fit())
    assert copy.get_params() == embedder.get_params()
    assert copy._loaded_model() is embedder._loaded_model()
    assert clone(RelationEmbedder(tiny)).model is tiny


def test_it_works_in_a_grid_search(embedder: RelationEmbedder) -> None:
    pipeline = make_pipeline(embedder, LogisticRegression())
    search = GridSearchCV(pipeline, {"relationembedder__both_directions": [False, True]}, cv=3)
    assert search.fit(PAIRS, LABELS).predict(PAIRS).shape == (6,)
