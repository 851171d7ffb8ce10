"""The one error that users see: what was wrong, where, and how to fix it; and the warnings."""

import difflib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

Word = TypeVar("Word", bound=str)

MOST_NAMED = 12  # known words in a message about an unknown one

# The packages that each extra brings to a plain installation.
EXTRAS = {
    "evaluate": ("gensim", "joblib", "matplotlib", "openai", "pandas"),
    "large": ("gguf",),
    "milvus": ("milvus_lite", "pymilvus"),
    "onnx": ("onnx", "onnxruntime"),
    "parquet": ("pyarrow",),
    "ray": ("ray",),
    "serve": ("fastapi", "prometheus_client", "uvicorn"),
    "sklearn": ("scipy", "sklearn"),
    "torch": ("safetensors", "torch", "transformers"),
    "train": ("accelerate", "peft", "snowballstemmer", "tensorboard"),
}


class RelvecError(ValueError):
    """Bad input, a missing model or a broken file; the message is one sentence that ends in the fix."""


class UnknownWordsWarning(UserWarning):
    """Some pairs of those that were encoded have a word that the model has no tokens for.

    >>> print(UnknownWordsWarning([("ภาษา", "คำ")], word="ภาษา", out_of=5))
    The model has no tokens for a word in 1 of 5 pairs, such as 'ภาษา'; the vectors of such pairs say little.
    """

    def __init__(self, pairs: Sequence[tuple[str, str]], word: str, out_of: int | None = None) -> None:
        super().__init__(pairs, word, out_of)
        self.pairs, self.word, self.out_of = pairs, word, out_of

    def __str__(self) -> str:
        part = "" if self.out_of is None else f"{len(self.pairs):,} of "
        number = counted(len(self.pairs) if self.out_of is None else self.out_of, "pair")
        problem = f"The model has no tokens for a word in {part}{number}, such as {self.word!r}"
        return f"{problem}; the vectors of such pairs say little."


class LeftOutWarning(UserWarning):
    """A part of the data is not used; the message is one sentence that ends in what would change that."""


@contextmanager
def needed_for(what: str, extra: str = "") -> Iterator[None]:
    """Imports in this block that fail for want of an extra become one sentence with the command that brings it.

    `extra` is the one to name where the work needs more than the first package that is missing.

    >>> with needed_for("Training"):
    ...     raise ModuleNotFoundError(name="torch.nn")
    Traceback (most recent call last):
    relvec.errors.RelvecError: Training needs torch; run pip install 'relvec[torch]'.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        bringing = [name for name, packages in EXTRAS.items() if package in packages]
        if not bringing:
            raise
        raise RelvecError(f"{what} needs {package}; run pip install 'relvec[{extra or bringing[0]}]'.") from error


@contextmanager
def errors_as(problem: str, fix: str, *kinds: type[Exception]) -> Iterator[None]:
    """Exceptions of these kinds, as other libraries raise them, become one sentence: the problem, the reason, the fix.

    A RelvecError says what it must already; it passes unless it is one of the kinds.

    >>> with errors_as("pairs.npz cannot be read", "write it again", KeyError, OSError):
    ...     {}["head"]
    Traceback (most recent call last):
    relvec.errors.RelvecError: pairs.npz cannot be read (no 'head'); write it again.
    """
    try:
        yield
    except kinds as error:
        if isinstance(error, RelvecError) and RelvecError not in kinds:
            raise
        raise RelvecError(f"{problem} ({brief(error)}); {fix}.") from error


def brief(error: Exception) -> str:
    """The first line of what an exception says, without a full stop."""
    text = f"no {error}" if isinstance(error, KeyError) else getattr(error, "strerror", None) or str(error)
    return text.strip().partition("\n")[0][:120].rstrip(".") or type(error).__name__


def counted(number: int, noun: str) -> str:
    """
    >>> counted(1, "pair"), counted(2500, "pair")
    ('1 pair', '2,500 pairs')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def size_text(bytes_: float) -> str:
    """
    >>> size_text(40_960), size_text(1.5e9), size_text(12)
    ('40.96 kB', '1.50 GB', '12 bytes')
    """
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if bytes_ >= size:
            return f"{bytes_ / size:.2f} {unit}"
    return f"{bytes_:.0f} bytes"


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """The end of a message about an unknown name: the known one that it comes close to, else other advice.

    >>> did_you_mean("tripelt", ["triplet", "infonce"], otherwise="see the list")
    "did you mean 'triplet'"
    """
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean {close[0]!r}" if close else otherwise


def one_of(what: str, word: str, known: Iterable[Word], where: str = "") -> Word:
    """The word, if it is one of the known ones; `what` says in the message what it should have been.

    `where` starts the message: the file and the line.

    >>> one_of("pooling", "mask", ["average", "mask"])
    'mask'
    """
    words = list(known)
    for each in words:
        if each == word:
            return each
    first = ", ".join(words[:MOST_NAMED]) + (", ..." if len(words) > MOST_NAMED else "")
    advice = did_you_mean(word, words, otherwise=f"choose one of {first}" if words else "there is none")
    raise RelvecError(f"{where}Unknown {what} {word!r}; {advice}.")
