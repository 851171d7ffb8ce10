"""From a baseline's name and settings to a system that can be evaluated."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from relvec.baselines.chance import Chance
from relvec.data.benchmarks.analogy import ANALOGY_DATASETS, Part, Question, load_questions
from relvec.errors import RelvecError
from relvec.evaluation.analogy import Solver
from relvec.evaluation.systems import SolverFor, System, vector_system
from relvec.model.cached_vectors import PairVectors
from relvec.pairs import Pair
from relvec.similarity import Scoring

Settings = dict[str, str]


@dataclass(frozen=True)
class _Context:
    """What a baseline may need besides its settings: the pairs it will be asked for, the task, where data is."""

    pairs: list[Pair]
    task: str
    name: str
    data_dir: Path | None
    device: str | None


def baseline_system(
    baseline: str,
    settings: Settings,
    pairs: Iterable[Pair],
    *,
    task: str = "analogy",
    name: str = "",
    data_dir: Path | None = None,
    device: str | None = None,
) -> System:
    """A baseline of the registry; `pairs` are all that it will be asked for, so that it reads only what it needs."""
    context = _Context(list(pairs), task, name, data_dir, device)
    return _BUILDERS[baseline](settings, context)


def _random(settings: Settings, context: _Context) -> System:
    solver = Chance()
    return System(context.name or solver.name, _always(solver), facts=_FACTS, out_of_vocabulary="chance")


def _pmi(settings: Settings, context: _Context) -> System:
    from relvec.baselines.pmi import PMI, WINDOW

    window = _whole_number("window", settings.get("window", str(WINDOW)))
    name = context.name or _told("PMI", f"window {window}" if window != WINDOW else "")
    solver = PMI(settings["corpus"], window, pairs=context.pairs, name=name)
    return System(solver.name, _always(solver), facts=_FACTS)


def _word_vectors(settings: Settings, context: _Context) -> System:
    from relvec.baselines.joined import Joined
    from relvec.baselines.pair_vectors import PairTable
    from relvec.baselines.word_vectors import WordVectors

    words = {word for pair in context.pairs for word in pair}
    features = settings.get("features", "diff")
    vectors: PairVectors = WordVectors(settings["vectors"], features, words=words, name=context.name)
    if "pairs" in settings:
        table = PairTable(settings["pairs"], pairs=context.pairs)
        both_directions = context.task == "classification"
        vectors = Joined([vectors, table], both_directions=both_directions, name=context.name)
    return vector_system(vectors, _FACTS)


def _pair_vectors(settings: Settings, context: _Context) -> System:
    from relvec.baselines.pair_vectors import PairTable

    return vector_system(PairTable(settings["pairs"], pairs=context.pairs, name=context.name), _FACTS)


def _proportion(settings: Settings, context: _Context) -> System:
    from relvec.baselines.language_model import LanguageModel
    from relvec.baselines.proportion import ProportionScore
    from relvec.baselines.proportion import Settings as Choices
    from relvec.baselines.proportion_tuning import tune

    is_tuned = _yes_or_no("tuned", settings.get("tuned", "false"))
    if is_tuned and "template" in settings:
        raise RelvecError("tuned=true chooses the template itself; leave out template.")
    kind = _kind(settings["kind"]) if "kind" in settings else None
    fixed = Choices(template=settings.get("template", Choices.template))
    model = LanguageModel.from_pretrained(settings["lm"], kind=kind, device=context.device)
    template = f"template {fixed.template}" if fixed != Choices() else ""
    name = context.name or _told(
        f"{model.name}, analogical proportion", kind or "", template, "tuned" if is_tuned else ""
    )

    def solver_for(dataset: str, part: Part, questions: Sequence[Question], scoring: Scoring) -> Solver:
        if not is_tuned:
            return ProportionScore(model, fixed, name=name)
        tuned = tune(model, _validation(dataset, context))
        return ProportionScore(model, tuned.settings, name=name, configuration=tuned.configuration)

    return System(name, solver_for, facts=_FACTS)


def _few_shot(settings: Settings, context: _Context) -> System:
    from relvec.baselines.few_shot import FewShot
    from relvec.baselines.likelihood import ChatModel, LikelihoodModel

    shots = _whole_number("shots", settings.get("shots", "0"))
    seed = _whole_number("seed", settings.get("seed", "0"))
    scorer: LikelihoodModel | ChatModel
    if "endpoint" in settings:
        from relvec.baselines.endpoint import Endpoint, connect

        scorer = connect(Endpoint(settings["endpoint"], settings["lm"]))
    else:
        from relvec.baselines.language_model import LanguageModel

        scorer = LanguageModel.from_pretrained(settings["lm"], kind="causal", device=context.device)
    name = context.name or f"{scorer.name} ({f'{shots}-shot' if shots else 'zero-shot'})"

    def solver_for(dataset: str, part: Part, questions: Sequence[Question], scoring: Scoring) -> Solver:
        examples = _validation(dataset, context) if shots else []
        return FewShot(scorer, examples, shots=shots, seed=seed, name=name)

    return System(name, solver_for, facts={**_FACTS, "seed": seed})


def _predictions(settings: Settings, context: _Context) -> System:
    from relvec.baselines.saved_predictions import SavedPredictions

    name = context.name or settings["column"]

    def solver_for(dataset: str, part: Part, questions: Sequence[Question], scoring: Scoring) -> Solver:
        return SavedPredictions(settings["file"], settings["column"], dataset, part, name=name)

    return System(name, solver_for, facts=_FACTS)


_FACTS = {"kind": "baseline"}

_BUILDERS: dict[str, Callable[[Settings, _Context], System]] = {
    "random": _random,
    "pmi": _pmi,
    "word-vectors": _word_vectors,
    "pair-vectors": _pair_vectors,
    "proportion": _proportion,
    "few-shot": _few_shot,
    "predictions": _predictions,
}


def _told(name: str, *settings: str) -> str:
    """The name with its unusual settings, since results that share a name count as seeds of one system."""
    unusual = ", ".join(filter(None, settings))
    return f"{name} ({unusual})" if unusual else name


def _always(solver: Solver) -> SolverFor:
    """The same solver for every dataset; it takes no notice of the scoring."""
    return lambda dataset, part, questions, scoring: solver


def _validation(dataset: str, context: _Context) -> list[Question]:
    """The validation part that belongs to a dataset; the full SAT set has that of SAT."""
    if dataset not in ANALOGY_DATASETS:
        raise RelvecError(f"{dataset} has no validation part to learn from; choose a dataset by name.")
    return load_questions(ANALOGY_DATASETS[dataset].folder, "valid", context.data_dir)


def _kind(text: str) -> Literal["causal", "masked"]:
    kinds: dict[str, Literal["causal", "masked"]] = {"causal": "causal", "masked": "masked"}
    if text in kinds:
        return kinds[text]
    raise RelvecError(f"kind cannot be {text!r}; give causal or masked.")


def _whole_number(name: str, text: str) -> int:
    if not text.isdecimal():
        raise RelvecError(f"{name} cannot be {text!r}; give a whole number.")
    try:
        return int(text)
    except ValueError as error:  # Python reads no number of more than 4,300 digits
        raise RelvecError(f"{name} cannot have {len(text):,} digits; give a smaller number.") from error


def _yes_or_no(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise RelvecError(f"{name} cannot be {text!r}; give true or false.")
    return text.lower() == "true"
