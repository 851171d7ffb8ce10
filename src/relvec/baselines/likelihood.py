"""How likely a text is: the value, and what can be asked for it."""

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable


class Likelihood(NamedTuple):
    """The summed log-probability of a text's tokens and how many they are."""

    log_probability: float
    tokens: int

    @property
    def log_perplexity(self) -> float:
        """-log P(text) / tokens; nan for a text without a scored token.

        >>> round(Likelihood(-6.0, 3).log_perplexity, 3)
        2.0
        """
        return -self.log_probability / self.tokens if self.tokens else math.nan

    @property
    def perplexity(self) -> float:
        """exp(-log P(text) / tokens)."""
        return math.exp(self.log_perplexity)

    def after(self, prefix: "Likelihood") -> "Likelihood":
        """What is left for the continuation when the likelihood of the text's beginning is known.

        >>> Likelihood(-6.0, 5).after(Likelihood(-2.0, 3))
        Likelihood(log_probability=-4.0, tokens=2)
        """
        return Likelihood(self.log_probability - prefix.log_probability, self.tokens - prefix.tokens)


class LikelihoodModel(Protocol):
    """Anything that says how likely a text is; the name is what tables call it."""

    name: str

    @property
    def fingerprint(self) -> str:
        """A checksum of all that decides the likelihoods."""
        ...

    @property
    def is_causal(self) -> bool:
        """Whether a token's probability depends only on what stands before it."""
        ...

    def likelihoods(self, texts: Sequence[str]) -> list[Likelihood]:
        """One likelihood a text, in the given order."""
        ...


@runtime_checkable
class ChatModel(Protocol):
    """Anything that answers a prompt with a text but does not say how likely other answers are."""

    name: str

    @property
    def fingerprint(self) -> str:
        """A checksum of all that decides the answers."""
        ...

    def answers(self, prompts: Sequence[str]) -> list[str]:
        """One answer a prompt, in the given order."""
        ...
