"""Analogy questions as GPT-3 got them: solved examples, then the stem, and the likeliest choice wins."""

import hashlib
import random
import re
from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import Field

from relvec.baselines.baseline import FACTS, Baseline, ChatModel, Context, LikelihoodModel, Precision, choice_scores
from relvec.data.benchmarks.analogy import Part, Question
from relvec.errors import RelvecError
from relvec.evaluation.systems import Scores, Solver, System
from relvec.pairs import Pair
from relvec.settings import Seed, Settings
from relvec.similarity import Scoring

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

    The prompt is `shots` solved questions, drawn from the examples with the seed (GPT-3 got 20), and the stem, "a is to
    b as". A choice is " c is to d". Its score is GPT-3's for analogies:

        log P(choice | prompt) / tokens of the choice

    A chat model gives no likelihoods. It gets the choices with letters and is asked for one. That choice scores 1, the
    others 0. A question that is answered without a letter counts as out of vocabulary (nan).
    """

    def __init__(
        self,
        scorer: LikelihoodModel | ChatModel,
        examples: Sequence[Question] = (),
        *,
        shots: int = 0,
        seed: int = 0,
        name: str = "",
    ) -> None:
        self.name = name or f"{scorer.name} ({f'{shots}-shot' if shots else 'zero-shot'})"
        self._scorer = scorer
        self._shots = shots
        self._pool = random.Random(seed).sample(list(examples), len(examples)) if shots else []

    @property
    def fingerprint(self) -> str:
        """A checksum of the scorer and the prompts."""
        return hashlib.sha256(repr((self._scorer.fingerprint, self._shots, self._pool)).encode()).hexdigest()

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
        if len(chosen) < self._shots:
            raise RelvecError(f"There are {len(chosen)} examples for {self._shots} shots; ask for fewer.")
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
        asked = [(question, self.prompt(question)) for question in questions]
        texts = [prompt + end for question, prompt in asked for end in ("", *map(choice_text, question.choices))]
        distinct = list(dict.fromkeys(texts))
        found = dict(zip(distinct, scorer.likelihoods(distinct), strict=True))

        def score(prompt: str, choice: Pair) -> float:
            return -found[prompt + choice_text(choice)].after(found[prompt]).log_perplexity

        return [np.array([score(prompt, choice) for choice in question.choices]) for question, prompt in asked]

    def _by_letter(self, scorer: ChatModel, questions: Sequence[Question]) -> list[Scores]:
        answers = scorer.answers([self.letter_prompt(question) for question in questions])
        return [choice_scores(q, parse_letter(answer, q)) for q, answer in zip(questions, answers, strict=True)]


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
    dtype: Precision = "float32"


def _build(settings: FewShotSettings, context: Context) -> System:
    scorer: LikelihoodModel | ChatModel
    if settings.endpoint:
        from relvec.baselines.endpoint import Endpoint, connect

        scorer = connect(Endpoint(settings.endpoint, settings.lm))
    else:
        from relvec.baselines.language_model import LanguageModel

        scorer = LanguageModel.from_pretrained(settings.lm, kind="causal", device=context.device, dtype=settings.dtype)
    name = context.name or FewShot(scorer, shots=settings.shots).name

    def solver_for(dataset: str, part: Part, questions: Sequence[Question], scoring: Scoring) -> Solver:
        examples = context.validation(dataset) if settings.shots else []
        return FewShot(scorer, examples, shots=settings.shots, seed=settings.seed, name=name)

    dtype = {} if settings.dtype == "float32" else {"dtype": settings.dtype}
    return System(name, solver_for, facts={**FACTS, "seed": settings.seed, **dtype})


BASELINE = Baseline(
    "few-shot", "multiple choice by a causal language model after some solved questions", _build, FewShotSettings
)
