"""The baselines by name: what each is, what it must be told, and what it can be scored on."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from relvec.errors import RelvecError, did_you_mean


@dataclass(frozen=True)
class Baseline:
    """A system to compare with: what each of its settings means, and which of them have no default."""

    name: str
    description: str
    tasks: tuple[str, ...] = ("analogy",)
    settings: dict[str, str] = field(default_factory=dict)
    required: tuple[str, ...] = ()


BASELINES: dict[str, Baseline] = {
    baseline.name: baseline
    for baseline in (
        Baseline("random", "a random choice, by its expected accuracy"),
        Baseline(
            "pmi",
            "the choice whose words co-occur most in a corpus, whatever the stem",
            settings={"corpus": "a text file, .gz or not", "window": "how many tokens apart the words may be (10)"},
            required=("corpus",),
        ),
        Baseline(
            "word-vectors",
            "word vectors (GloVe, fastText, word2vec) of the two words, combined",
            tasks=("analogy", "classification", "mapping"),
            settings={
                "vectors": "a text, .bin or .npz file",
                "features": "diff, cat, dot, or several joined by + (diff)",
                "pairs": "a file of pair vectors to join to them",
            },
            required=("vectors",),
        ),
        Baseline(
            "pair-vectors",
            "vectors of word pairs (RELATIVE, pair2vec), with keys a__b",
            tasks=("analogy", "classification", "mapping"),
            settings={"pairs": "a text or .bin file"},
            required=("pairs",),
        ),
        Baseline(
            "proportion",
            "analogical proportion score: perplexity of a : b :: c : d under a language model",
            settings={
                "lm": "a causal or masked language model: folder, hub id or .gguf file",
                "kind": "causal or masked (by architecture)",
                "template": "to-as, to-what, rel-same, what-to, she-to-as or as-what (to-as)",
                "tuned": "true to choose all settings on the validation part (false)",
            },
            required=("lm",),
        ),
        Baseline(
            "few-shot",
            "multiple choice by a causal language model after some solved questions",
            settings={
                "lm": "a causal language model: folder, hub id or .gguf file; or a model name of the endpoint",
                "endpoint": "the address of an OpenAI-compatible server, to ask it instead",
                "shots": "how many questions of the validation part to show (0)",
                "seed": "decides which (0)",
            },
            required=("lm",),
        ),
        Baseline(
            "predictions",
            "another system's saved answers",
            settings={
                "file": "JSON Lines with dataset, split, index, answer and a column for each system",
                "column": "which system",
            },
            required=("file", "column"),
        ),
    )
}


def chosen_settings(name: str, given: Iterable[str], task: str) -> dict[str, str]:
    """The settings of a baseline from `name=value` texts, checked.

    >>> chosen_settings("word-vectors", ["vectors=glove.txt"], "analogy")
    {'vectors': 'glove.txt'}
    """
    if name not in BASELINES:
        advice = did_you_mean(name, BASELINES, otherwise="see `relvec baselines`")
        raise RelvecError(f"There is no baseline {name!r}; {advice}.")
    baseline = BASELINES[name]
    if task not in baseline.tasks:
        raise RelvecError(f"The baseline {name} cannot be scored on {task}; it is for {', '.join(baseline.tasks)}.")
    settings: dict[str, str] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not value:
            raise RelvecError(f"--set {text} has no value; write --set name=value.")
        if key not in baseline.settings:
            known = ", ".join(baseline.settings) or "none"
            advice = did_you_mean(key, baseline.settings, otherwise=f"it has {known}")
            raise RelvecError(f"The baseline {name} has no setting {key!r}; {advice}.")
        settings[key] = value
    for key in baseline.required:
        if key not in settings:
            raise RelvecError(f"The baseline {name} needs {key}, {baseline.settings[key]}; give --set {key}=...")
    return settings
