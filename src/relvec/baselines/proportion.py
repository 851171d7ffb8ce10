"""The analogical proportion score of Ushio et al. (ACL 2021): how natural does a language model find an analogy?

A question has a stem (a, b) and choices (c_i, d_i). The four words are put into a template, a language model gives the
text's perplexity f, and a score compares the perplexities of the choices. An analogy a:b::c:d holds in 8 orders of its
words (positive) and fails in the other 16 (negative), which gives

    AP(a, b, c_i, d_i) = A_pos(s over the positive orders) - beta * A_neg(s over the negative orders).
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Annotated, Any, ClassVar, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from relvec.baselines.baseline import FACTS, Baseline, Context, LikelihoodModel, Precision
from relvec.data.benchmarks.analogy import Part, Question
from relvec.errors import RelvecError, one_of
from relvec.evaluation.systems import Scores, Solver, System, name_with_settings
from relvec.settings import Settings
from relvec.similarity import Scoring

PerplexityTable = NDArray[np.float64]

TEMPLATES: dict[str, str] = {
    "to-as": "{a} is to {b} as {c} is to {d}",
    "to-what": "{a} is to {b} what {c} is to {d}",
    "rel-same": "The relation between {a} and {b} is the same as the relation between {c} and {d}",
    "what-to": "what {a} is to {b}, {c} is to {d}",
    "she-to-as": "She explained to him that {a} is to {b} as {c} is to {d}.",
    "as-what": "As I explained earlier, what {a} is to {b} is essentially the same as what {c} is to {d}.",
}

POSITIVE_ORDERS: tuple[tuple[int, ...], ...] = (
    (0, 1, 2, 3),
    (0, 2, 1, 3),
    (1, 0, 3, 2),
    (1, 3, 0, 2),
    (2, 3, 0, 1),
    (2, 0, 3, 1),
    (3, 2, 1, 0),
    (3, 1, 2, 0),
)
NEGATIVE_ORDERS = tuple(order for order in permutations(range(4)) if order not in POSITIVE_ORDERS)
ORDERS = POSITIVE_ORDERS + NEGATIVE_ORDERS

POSITIVE_AGGREGATORS = (*(f"index-{k}" for k in range(len(POSITIVE_ORDERS))), "mean", "max", "min")
NEGATIVE_AGGREGATORS = (*(f"index-{k}" for k in range(len(NEGATIVE_ORDERS))), "mean", "max", "min")


def in_template(template: str, words: Sequence[str], order: Sequence[int] = (0, 1, 2, 3)) -> str:
    """The text of four words in an order.

    >>> in_template("to-as", ["word", "language", "note", "music"])
    'word is to language as note is to music'
    >>> in_template("what-to", ["word", "language", "note", "music"], order=(2, 3, 0, 1))
    'what note is to music, word is to language'
    """
    return TEMPLATES[template].format(**dict(zip("abcd", (words[place] for place in order), strict=True)))


def aggregate(aggregator: str, values: PerplexityTable, axis: int = -1) -> PerplexityTable:
    """One value for many orders: their mean, max or min, or that of a single one.

    >>> aggregate("mean", np.array([1.0, 2.0, 6.0])).item(), aggregate("index-1", np.array([1.0, 2.0, 6.0])).item()
    (3.0, 2.0)
    """
    if aggregator.startswith("index-"):
        return np.take(values, int(aggregator.removeprefix("index-")), axis=axis)
    found: PerplexityTable = getattr(np, aggregator)(values, axis=axis)
    return found


class Score(Protocol):
    """Scores of the n choices from log-perplexities [..., n, n], where row i, column j is log f(a, b, c_i, d_j).

    As in the authors' code, -log of a perplexity's share in a sum of perplexities stands for a log-likelihood.
    """

    name: ClassVar[str]
    mixes_choices: ClassVar[bool]
    """Whether texts with the head of one choice and the tail of another are needed."""

    def __call__(self, log_perplexities: PerplexityTable) -> PerplexityTable: ...


@dataclass(frozen=True)
class Perplexity:
    """s_PPL(i) = -log(f(a, b, c_i, d_i) / sum_k f(a, b, c_k, d_k))

    >>> Perplexity()(np.log([[2.0, 9.0], [9.0, 6.0]])).round(3).tolist()
    [1.386, 0.288]
    """

    name: ClassVar[str] = "ppl"
    mixes_choices: ClassVar[bool] = False

    def __call__(self, log_perplexities: PerplexityTable) -> PerplexityTable:
        own = _diagonal(log_perplexities)
        return _log_sum(own, axis=-1)[..., None] - own


@dataclass(frozen=True)
class MutualInformation:
    """s_PMI(i) = A(l(d_i | c_i) - alpha l(c_i), l(c_i | d_i) - alpha l(d_i)), with f_ij = f(a, b, c_i, d_j) and

    l(d_i | c_i) = -log(f_ii / sum_j f_ij), l(c_i) = -log(sum_j f_ij / sum_kj f_kj), and the same by columns.

    >>> MutualInformation(alpha=0.5, aggregator="index-0")(np.log([[1.0, 1.0], [1.0, 2.0]])).round(3).tolist()
    [0.235, 0.15]
    """

    alpha: float = 0.0
    aggregator: str = "mean"
    name: ClassVar[str] = "pmi"
    mixes_choices: ClassVar[bool] = True

    def __call__(self, log_perplexities: PerplexityTable) -> PerplexityTable:
        own = _diagonal(log_perplexities)
        whole = _log_sum(log_perplexities, axis=(-2, -1))[..., None]
        by_head, by_tail = (_log_sum(log_perplexities, axis=axis) for axis in (-1, -2))
        ways = [(side - own) - self.alpha * (whole - side) for side in (by_head, by_tail)]
        return aggregate(self.aggregator, np.stack(ways, axis=-1))


@dataclass(frozen=True)
class MarginalPerplexity:
    """s_mPPL(i) = s_PPL(i) - alpha_head l(c_i) - alpha_tail l(d_i), with l as in `MutualInformation`.

    >>> MarginalPerplexity(alpha_head=0.4)(np.log([[1.0, 1.0], [1.0, 2.0]])).round(3).tolist()
    [0.732, 0.201]
    """

    alpha_head: float = 0.0
    alpha_tail: float = 0.0
    name: ClassVar[str] = "mppl"
    mixes_choices: ClassVar[bool] = True

    def __call__(self, log_perplexities: PerplexityTable) -> PerplexityTable:
        whole = _log_sum(log_perplexities, axis=(-2, -1))[..., None]
        head = whole - _log_sum(log_perplexities, axis=-1)
        tail = whole - _log_sum(log_perplexities, axis=-2)
        return Perplexity()(log_perplexities) - self.alpha_head * head - self.alpha_tail * tail


def _diagonal(table: PerplexityTable) -> PerplexityTable:
    return np.diagonal(table, axis1=-2, axis2=-1)


def _log_sum(values: PerplexityTable, axis: int | tuple[int, ...]) -> PerplexityTable:
    """log sum exp: perplexities of short odd texts reach many digits."""
    top = np.max(values, axis=axis, keepdims=True)
    return np.log(np.sum(np.exp(values - top), axis=axis)) + np.squeeze(top, axis=axis)


@dataclass(frozen=True)
class ProportionSettings:
    """How an analogical proportion is scored.

    The defaults are the untuned setting of Ushio et al.: template `to-as`, plain perplexity, the words in their given
    order only, and no negative orders.
    """

    template: str = "to-as"
    score: Score = Perplexity()
    positive: str = "index-0"
    negative: str = "index-0"
    beta: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """The settings for a record.

        >>> ProportionSettings(score=MarginalPerplexity(0.2, -0.4)).to_dict()  # doctest: +NORMALIZE_WHITESPACE
        {'template': 'to-as', 'score': 'mppl', 'alpha_head': 0.2, 'alpha_tail': -0.4, 'positive': 'index-0',
         'negative': 'index-0', 'beta': 0.0}
        """
        ends = {"positive": self.positive, "negative": self.negative, "beta": self.beta}
        return {"template": self.template, "score": self.score.name, **vars(self.score), **ends}

    @property
    def orders(self) -> list[int]:
        """Which of `ORDERS` the settings look at."""
        return _used(self.positive, 0, len(POSITIVE_ORDERS)) + (
            _used(self.negative, len(POSITIVE_ORDERS), len(NEGATIVE_ORDERS)) if self.beta else []
        )


def _used(aggregator: str, first: int, count: int) -> list[int]:
    if aggregator.startswith("index-"):
        return [first + int(aggregator.removeprefix("index-"))]
    return list(range(first, first + count))


def log_perplexity_tables(
    model: LikelihoodModel,
    questions: Sequence[Question],
    template: str,
    orders: Sequence[int] = range(len(ORDERS)),
    mixes_choices: bool = True,
) -> list[PerplexityTable]:
    """For each question log f by order, head of choice i and tail of choice j: [24, n, n], nan where not asked for.

    The model is asked once for each distinct text.
    """
    places: list[tuple[int, int, int, int]] = []
    texts: list[str] = []
    tables = [np.full((len(ORDERS), len(q.choices), len(q.choices)), np.nan) for q in questions]
    for number, question in enumerate(questions):
        for i, (head, _) in enumerate(question.choices):
            for j, (_, tail) in enumerate(question.choices):
                if i == j or mixes_choices:
                    for order in orders:
                        places.append((number, order, i, j))
                        texts.append(in_template(template, (*question.stem, head, tail), ORDERS[order]))
    distinct = list(dict.fromkeys(texts))
    found = dict(zip(distinct, model.likelihoods(distinct), strict=True))
    for (number, order, i, j), text in zip(places, texts, strict=True):
        tables[number][order, i, j] = found[text].log_perplexity
    return tables


class ProportionScore:
    """Answers analogy questions by the analogical proportion score.

    `configuration` is what a record says of the settings.
    """

    def __init__(
        self,
        model: LikelihoodModel,
        settings: ProportionSettings | None = None,
        *,
        name: str = "",
        configuration: dict[str, Any] | None = None,
    ) -> None:
        self.settings = settings or ProportionSettings()
        self.configuration = configuration or self.settings.to_dict()
        self.name = name or f"{model.name}, analogical proportion"
        self._model = model

    @property
    def fingerprint(self) -> str:
        """A checksum of language model and settings."""
        return hashlib.sha256(repr((self._model.fingerprint, self.settings.to_dict())).encode()).hexdigest()

    def scores(self, questions: Sequence[Question]) -> list[Scores]:
        """The analogical proportion score of each choice."""
        chosen = self.settings
        tables = log_perplexity_tables(
            self._model, questions, chosen.template, chosen.orders, chosen.score.mixes_choices
        )
        found = []
        for table in tables:
            positive, negative = np.split(chosen.score(table), [len(POSITIVE_ORDERS)])  # [24, n]
            scores = aggregate(chosen.positive, positive, axis=0)
            found.append(scores - chosen.beta * aggregate(chosen.negative, negative, axis=0) if chosen.beta else scores)
        return found


class Options(Settings):
    """The language model and how it is asked."""

    lm: Annotated[str, Field(description="a causal or masked language model: folder, hub id or .gguf file")]
    kind: Annotated[
        Literal["causal", "masked"] | None, Field(description="causal or masked; by default by architecture")
    ] = None
    template: Annotated[str, Field(description=f"{', '.join(TEMPLATES)}; by default to-as")] = ""
    tuned: Annotated[bool, Field(description="true to choose all settings on the validation part")] = False
    dtype: Precision = "float32"

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.tuned and self.template:
            raise RelvecError("tuned=true chooses the template itself; leave out template.")
        if self.template:
            one_of("template", self.template, TEMPLATES)
        return self


def _build(options: Options, context: Context) -> System:
    from relvec.baselines.language_model import LanguageModel
    from relvec.baselines.proportion_tuning import tune

    fixed = ProportionSettings(template=options.template) if options.template else ProportionSettings()
    model = LanguageModel.from_pretrained(options.lm, kind=options.kind, device=context.device, dtype=options.dtype)
    template = f"template {fixed.template}" if fixed != ProportionSettings() else ""
    unusual = (options.kind or "", template, "tuned" if options.tuned else "")
    name = context.name or name_with_settings(f"{model.name}, analogical proportion", *unusual)

    def solver_for(dataset: str, part: Part, questions: Sequence[Question], scoring: Scoring) -> Solver:
        if not options.tuned:
            return ProportionScore(model, fixed, name=name)
        tuned = tune(model, context.validation(dataset))
        return ProportionScore(model, tuned.settings, name=name, configuration=tuned.configuration)

    return System(name, solver_for, facts=FACTS if options.dtype == "float32" else {**FACTS, "dtype": options.dtype})


BASELINE = Baseline(
    "proportion", "analogical proportion score: perplexity of a : b :: c : d under a language model", _build, Options
)
