"""Analogy questions as GPT-3 got them: solved examples, then the stem, and the likeliest choice wins."""

import hashlib
import random
import re
from collections.abc import Sequence
from typing import Annotated, Literal, get_args

import numpy as np
from pydantic import Field

from relvec.baselines.baseline import FACTS, Baseline, Context
from relvec.baselines.likelihood import ChatModel, Likelihood, LikelihoodModel
from relvec.data.benchmarks.analogy import Part, Question
from relvec.errors import RelvecError, one_of
from relvec.evaluation.systems import Scores, Solver, System
from relvec.pairs import Pair
from relvec.settings import Seed, Settings
from relvec.similarity import Scoring

Normalization = Literal["tokens", "unconditional", "none"]

ANSWER_CONTEXT = "as"
INSTRUCTION = "Which pair of words is related in the same way as the first pair? Answer with the letter only."
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def stem_text(stem: Pair) -> str:
    """
    >>> stem_text(("lull", "trust"))
    'lull is to trust as'
    """
    return f"{stem[0]} is to {stem[1]} as"


def choice_text(choice: Pair) -> str:
    """
    >>> choice_text(("cajole", "compliance"))
    ' cajole is to compliance'
    """
    return f" {choice[0]} is to {choice[1]}"


class FewShot:
    """Answers a question by the choice that continues a prompt best (Brown et al. 2020, sections 2.4 and 3.9.3).

    The prompt is `shots` solved questions (none: zero-shot; GPT-3 got 20) and the stem, "a is to b as"; a choice is
    " c is to d". With `normalization` a choice's score is

        tokens:         log P(choice | prompt) / tokens of the choice     (GPT-3's rule for analogies)
        unconditional:  log P(choice | prompt) - log P(choice | "as")
        none:           log P(choice | prompt)

    A chat model gives no likelihoods: it gets the choices with letters and is asked for one, which scores 1, the others
    0; an answer without a letter leaves the question open (nan), and it counts as out of vocabulary.
    """

    def __init__(
        self,
        scorer: LikelihoodModel | ChatModel,
        examples: Sequence[Question] = (),
        *,
        shots: int | None = None,
        seed: int = 0,
        normalization: Normalization = "tokens",
        name: str = "",
    ) -> None:
        """Draw exactly `shots` of the examples with the seed; by default take all that give no answer away."""
        self._shots = len(examples) if shots is None else shots
        self._is_exact = shots is not None
        one_of("normalization", normalization, get_args(Normalization))
        if not 0 <= self._shots <= len(examples):
            raise RelvecError(f"{self._shots} shots cannot be drawn from {len(examples)} examples; ask for fewer.")
        if not isinstance(scorer, ChatModel) and not scorer.is_causal:
            raise RelvecError(f"{scorer.name} is a masked language model, which continues no prompt; use a causal one.")
        self.name = name or f"{scorer.name} ({f'{self._shots}-shot' if self._shots else 'zero-shot'})"
        self._scorer = scorer
        self._seed = seed
        self._normalization: Normalization = normalization
        self._pool = random.Random(seed).sample(list(examples), len(examples)) if self._shots else []

    @property
    def fingerprint(self) -> str:
        """A checksum of the scorer, the prompt and how a score is made."""
        parts = (self._scorer.fingerprint, self._shots, self._is_exact, self._seed, self._normalization, self._pool)
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    @property
    def configuration(self) -> dict[str, int]:
        """What a record tells: how many solved questions of the dataset were shown."""
        return {"shots": self._shots}

    def scores(self, questions: Sequence[Question]) -> list[Scores]:
        """One score a choice, the highest wins."""
        if isinstance(self._scorer, ChatModel):
            return self._by_letter(self._scorer, questions)
        return self._by_likelihood(self._scorer, questions)

    def examples_for(self, question: Question) -> list[Question]:
        """The first of the drawn examples that give nothing of the question away."""
        chosen = [example for example in self._pool if not _gives_away(example, question)][: self._shots]
        if self._is_exact and len(chosen) < self._shots:
            a, b = question.stem
            raise RelvecError(
                f"Without the question {a}:{b} itself there are {len(chosen)} examples for {self._shots} shots; "
                "ask for fewer."
            )
        return chosen

    def prompt(self, question: Question) -> str:
        """The solved examples, one a line, and the stem."""
        solved = [stem_text(e.stem) + choice_text(e.choices[e.answer]) for e in self.examples_for(question)]
        return "\n".join([*solved, stem_text(question.stem)])

    def letter_prompt(self, question: Question) -> str:
        """The same for a chat model: choices with letters, solved and unsolved."""
        solved = [_lettered(e) + f" {LETTERS[e.answer]}" for e in self.examples_for(question)]
        return "\n\n".join([INSTRUCTION, *solved, _lettered(question)])

    def _by_likelihood(self, scorer: LikelihoodModel, questions: Sequence[Question]) -> list[Scores]:
        prompts = [self.prompt(question) for question in questions]
        asked = list(zip(questions, prompts, strict=True))
        texts = [prompt + end for question, prompt in asked for end in ("", *map(choice_text, question.choices))]
        if self._normalization == "unconditional":
            choices = {choice_text(choice) for question in questions for choice in question.choices}
            texts += [ANSWER_CONTEXT, *(ANSWER_CONTEXT + choice for choice in sorted(choices))]
        distinct = list(dict.fromkeys(texts))
        found = dict(zip(distinct, scorer.likelihoods(distinct), strict=True))
        return [
            np.array([self._score(found, prompt, choice_text(choice)) for choice in question.choices])
            for question, prompt in asked
        ]

    def _score(self, found: dict[str, Likelihood], prompt: str, choice: str) -> float:
        continuation = found[prompt + choice].after(found[prompt])
        if self._normalization == "tokens":
            return -continuation.log_perplexity
        if self._normalization == "unconditional":
            alone = found[ANSWER_CONTEXT + choice].after(found[ANSWER_CONTEXT])
            return continuation.log_probability - alone.log_probability
        return continuation.log_probability

    def _by_letter(self, scorer: ChatModel, questions: Sequence[Question]) -> list[Scores]:
        answers = scorer.answers([self.letter_prompt(question) for question in questions])
        found = []
        for question, answer in zip(questions, answers, strict=True):
            chosen = parse_letter(answer, question)
            scores = np.full(len(question.choices), np.nan if chosen is None else 0.0)
            if chosen is not None:
                scores[chosen] = 1.0
            found.append(scores)
        return found


def _gives_away(example: Question, question: Question) -> bool:
    """Whether the example is the question, or states one of its choices as the answer."""
    pairs = {question.stem, *question.choices}
    return example.stem == question.stem or {example.stem, example.choices[example.answer]} <= pairs


def _lettered(question: Question) -> str:
    lines = [f"{letter}. {c} : {d}" for letter, (c, d) in zip(LETTERS, question.choices, strict=False)]
    return "\n".join([f"{question.stem[0]} : {question.stem[1]}", *lines, "Answer:"])


def parse_letter(answer: str, question: Question) -> int | None:
    """The choice that a free answer names: by its letter, else by its words; None if that is not clear.

    >>> question = Question(("lull", "trust"), (("balk", "fortitude"), ("cajole", "compliance")), 1)
    >>> [parse_letter(text, question) for text in ("B", "**b)** cajole", "A good guess: the answer is (B).", "Hm.")]
    [1, 1, 1, None]
    >>> parse_letter("I would say cajole : compliance", question)
    1
    """
    letters = LETTERS[: len(question.choices)]
    spoken = re.sub(r"(?s)<think>.*?(</think>|$)", "", answer).strip()
    opening = re.match(rf"[\W_]*([{letters}{letters.lower()}])(?:[\W_]*$|[\W_]*[.):\]*])", spoken)
    letter = rf"([{letters}]\b|[{letters.lower()}][\W_]*$)"
    stated = re.findall(rf"(?i:answer|choice|option)(?i:\s+is)?[\s:*(\[]*{letter}", spoken)
    alone = re.findall(rf"\b([{letters}])\b", spoken)
    for named in ([opening[1].upper()] if opening else [], stated, alone):
        if len(set(named)) == 1:
            return letters.index(named[0][0].upper())
    words = [
        place
        for place, pair in enumerate(question.choices)
        if all(re.search(rf"(?i)\b{re.escape(word)}\b", spoken) for word in pair)
    ]
    return words[0] if len(words) == 1 else None


class FewShotSettings(Settings):
    """Which language model, and how many solved questions it sees."""

    lm: Annotated[
        str,
        Field(description="a causal language model: folder, hub id or .gguf file; or a model name of the endpoint"),
    ]
    endpoint: Annotated[str, Field(description="the address of an OpenAI-compatible server, to ask it instead")] = ""
    shots: Annotated[int, Field(ge=0, description="how many questions of the validation part to show (0)")] = 0
    seed: Annotated[Seed, Field(description="decides which (0)")] = 0


def _build(settings: FewShotSettings, context: Context) -> System:
    scorer: LikelihoodModel | ChatModel
    if settings.endpoint:
        from relvec.baselines.endpoint import Endpoint, connect

        scorer = connect(Endpoint(settings.endpoint, settings.lm))
    else:
        from relvec.baselines.language_model import LanguageModel

        scorer = LanguageModel.from_pretrained(settings.lm, kind="causal", device=context.device)
    name = context.name or f"{scorer.name} ({f'{settings.shots}-shot' if settings.shots else 'zero-shot'})"

    def solver_for(dataset: str, part: Part, questions: Sequence[Question], scoring: Scoring) -> Solver:
        examples = context.validation(dataset) if settings.shots else []
        return FewShot(scorer, examples, shots=settings.shots, seed=settings.seed, name=name)

    return System(name, solver_for, facts={**FACTS, "seed": settings.seed})


BASELINE = Baseline(
    "few-shot", "multiple choice by a causal language model after some solved questions", _build, FewShotSettings
)
