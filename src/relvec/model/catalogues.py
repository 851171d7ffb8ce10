"""The catalogue of relations that belongs to a model: shipped with it, or made once and kept in the cache."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from relvec.data.sources import DEFAULT_SOURCE, load
from relvec.errors import errors_as
from relvec.model.backends import Workload
from relvec.model.cached_vectors import ModelVectors
from relvec.model.model_check import PROBE_PAIRS, median_cosine
from relvec.model.relation_model import RelBERT
from relvec.naming.building import build_catalogue, text_vectors
from relvec.naming.catalogue import Catalogue
from relvec.naming.entries import bundled_groups
from relvec.similarity import Vectors
from relvec.storage.cache import Cache
from relvec.storage.job import job_of

CATALOGUE_COSINE = 0.99  # a model in bfloat16 may use the catalogue of the same one in float32

QUICK_TEXTS = 64
"""From this many texts on, it is worth waiting for torch and keeping the vectors."""

SENTENCE_ENCODERS = ("mpnet", "minilm")
"""Base models that give vectors of sentences, the best first."""


def bundled_catalogue_path(name: str) -> Path:
    """Where the catalogue of a bundled model lies in this package."""
    return Path(str(files("relvec.naming"))) / "catalogues" / f"{name}.npz"


def bundled_catalogue(model: RelBERT) -> Catalogue | None:
    """The catalogue that lies in this package for a model; None for a model that did not make it."""
    path = bundled_catalogue_path(model.name)
    if not path.is_file():
        return None
    with errors_as(f"The catalogue {path} is damaged", "install relvec again", Exception):
        found = Catalogue.from_bytes(path.read_bytes())
    return found if median_cosine(model, PROBE_PAIRS, found.probes) >= CATALOGUE_COSINE else None


def existing_catalogue(model: RelBERT) -> Catalogue | None:
    """The catalogue that is shipped with a model, or was made for it before; None if it must be made first."""
    if found := bundled_catalogue(model):
        return found
    key = _made_of()
    content = _kept(model).get([key]).get(key)
    return None if content is None else Catalogue.from_bytes(content)


def own_catalogue(model: RelBERT) -> Catalogue:
    """The catalogue of the bundled relations. If there is none yet, some 25,000 pairs are encoded for it, once."""
    found = existing_catalogue(model)
    if found is None:
        content = make_catalogue(model).to_bytes()
        _kept(model).add({_made_of(): content})
        found = Catalogue.from_bytes(content)  # rounded, as it will be read next time
    return found


def _kept(model: RelBERT) -> Cache:
    return Cache(f"catalogue of entries and wordings {model.fingerprint}", about=model.name)


def _made_of() -> str:
    return job_of(load(DEFAULT_SOURCE), bundled_groups())


def make_catalogue(model: RelBERT, *, show_progress: bool | None = None) -> Catalogue:
    """A new catalogue of the bundled relations, without vectors of their definitions."""
    vectors = ModelVectors(model, show_progress=show_progress)
    relations = load(DEFAULT_SOURCE)
    catalogue = build_catalogue(relations, lambda pairs: vectors.vectors(pairs)[0], groups=bundled_groups())
    encoder = model.language_model if model.language_model in SENTENCE_ENCODERS else SENTENCE_ENCODERS[0]
    return replace(catalogue, probes=model.encode(PROBE_PAIRS, normalize=True), text_encoder=encoder)


def with_texts(catalogue: Catalogue) -> Catalogue:
    """The catalogue with vectors of its definitions, which are encoded if it has none."""
    if len(catalogue.texts):
        return catalogue
    texts = text_vectors(catalogue.relations, lambda texts: encoded_texts(texts, catalogue.text_encoder))
    return replace(catalogue, texts=texts)


def encoded_texts(texts: Sequence[str], encoder: str) -> Vectors:
    """Vectors of sentences, by a sentence encoder that is the base of relation models."""
    model = _text_model(encoder, "quick" if len(texts) < QUICK_TEXTS else "batch")
    cut = [text.strip().partition(" ") for text in texts]
    pairs = [(first, rest or ".") for first, _, rest in cut]
    return model.encode(pairs) if len(texts) < QUICK_TEXTS else ModelVectors(model).vectors(pairs)[0]


@lru_cache(maxsize=1)
def _text_model(encoder: str, workload: Workload) -> RelBERT:
    """A sentence is a pair in a prompt without words of its own."""
    return RelBERT.from_pretrained(encoder, template="[h] [t]", pooling="average", workload=workload)
