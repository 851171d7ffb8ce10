"""What users import, and how long they wait for it."""

import subprocess
import sys
from importlib import import_module

import pytest

import relvec

TOP_LEVEL = ["PairIndex", "Prototype", "RelBERT", "RelationEmbedder", "RelationNamer", "RelvecError", "Template"]

IN_PACKAGES = {
    "relvec.index": ["PairIndex", "complete"],
    "relvec.model": ["embed_to_file"],
    "relvec.training": ["Recipe", "train"],
    "relvec.distillation": ["distill"],
    "relvec.evaluation": ["evaluate"],
}


def test_the_top_level_has_the_classes_that_users_need() -> None:
    assert sorted(relvec.__all__) == sorted([*TOP_LEVEL, "__version__"])
    assert dir(relvec) == relvec.__all__


@pytest.mark.parametrize("name", TOP_LEVEL)
def test_a_class_of_the_top_level_is_named_as_it_is_imported(name: str) -> None:
    assert getattr(relvec, name).__name__ == name


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module, names in IN_PACKAGES.items() for name in names]
)
def test_a_package_exports_what_it_is_for(module: str, name: str) -> None:
    package = import_module(module)
    assert name in package.__all__
    assert getattr(package, name).__name__ == name


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'RelBert'"):
        relvec.RelBert  # noqa: B018


@pytest.mark.parametrize(
    ("statement", "slow"),
    [
        ("import relvec", {"numpy", "torch", "pydantic"}),
        ("from relvec import RelBERT, PairIndex, Prototype, Template, RelvecError", {"torch", "transformers", "faiss"}),
        ("from relvec.training import Recipe", {"torch", "transformers"}),
    ],
)
def test_an_import_waits_for_nothing_that_it_does_not_need(statement: str, slow: set[str]) -> None:
    code = f"{statement}\nimport sys\nassert not {slow!r} & sys.modules.keys(), {slow!r} & sys.modules.keys()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
