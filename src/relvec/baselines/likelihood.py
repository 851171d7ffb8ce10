"""How likely a text is under a language model, and what such models have in common."""

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

    def after(self, prefix: "Likelihood") -> "Likelihood":
        """The likelihood of a continuation: this text without its beginning.

        >>> Likelihood(-6.0, 5).after(Likelihood(-2.0, 3))
        Likelihood(log_probability=-4.0, tokens=2)
        """
        return Likelihood(self.log_probability - prefix.log_probability, self.tokens - prefix.tokens)


class LikelihoodModel(Protocol):
    """A model that says how likely texts are. `fingerprint` is a checksum of all that decides the likelihoods."""

    name: str

    @property
    def fingerprint(self) -> str: ...

    def likelihoods(self, texts: Sequence[str]) -> list[Likelihood]: ...


@runtime_checkable
class ChatModel(Protocol):
    """A model that answers a prompt, but does not say how likely other answers are."""

    name: str

    @property
    def fingerprint(self) -> str: ...

    def answers(self, prompts: Sequence[str]) -> list[str]: ...
