"""What could keep a plan from being finished, asked before its first step."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from relvec.data.benchmarks.registry import BENCHMARKS
from relvec.data.sources import load
from relvec.errors import RelvecError
from relvec.hub.catalogue import BASE_MODELS, BUNDLED_MODELS
from relvec.hub.models import base_folder
from relvec.hub.network import hub_answers, offline
from relvec.io.files import expanded
from relvec.model.backends import has_gpu
from relvec.reproduction.plan import Profile, Step


def problems(
    steps: Sequence[Step], profile: Profile, inputs: Mapping[str, str], data_dir: Path | None
) -> Iterator[str]:
    """One sentence with its fix for each thing that is missing: a GPU, files, models, datasets."""
    if profile.needs_gpu and not has_gpu():
        yield "This profile needs a GPU and torch finds none; add --profile laptop, or go where there is one."
    for name, path in inputs.items():
        if not expanded(path).exists():
            yield f"There is no {path} for --input {name}; check the path."
    models = dict.fromkeys(str(step.values[key]) for step in steps for key in ("base", "lm") if key in step.values)
    reason = "the network is switched off" if offline() else "the hub does not answer"
    for model in models:
        if not _is_available(model):
            yield f"Not here, and {reason}: {model}; go where the hub is, or give a folder by --base."
    yield from _missing_data(dict.fromkeys(name for step in steps for name in step.pattern.data), data_dir)


def _missing_data(names: Iterable[str], data_dir: Path | None) -> Iterator[str]:
    for name in names:
        try:
            if name in BENCHMARKS:
                BENCHMARKS[name].file("test", data_dir)
            else:
                load(name, data_dir=data_dir)
        except RelvecError as error:
            yield str(error)


def _is_available(model: str) -> bool:
    if expanded(model).exists() or model in BUNDLED_MODELS:
        return True
    if model in BASE_MODELS:
        return base_folder(BASE_MODELS[model]).is_dir() or not offline()
    from huggingface_hub import try_to_load_from_cache

    return isinstance(try_to_load_from_cache(model, "config.json"), str) or hub_answers()
