"""The settings of a distillation; they need no torch, so the command takes its options from here."""

from relvec.settings import Seed, Settings, setting


class DistillationSettings(Settings):
    """How the student is trained; `steps`, if above 0, takes the place of `epochs`.

    The learning rate is above that of fine-tuning: each pair has a target of its own, so there is little to overfit.
    The loss is the vector loss plus `similarity_weight` times the similarity loss, which is some ten times smaller.
    """

    steps: int = setting(0, "how many steps to train, in place of epochs", ge=0)
    epochs: float = setting(5.0, "how often each pair is met", gt=0)
    batch_size: int = setting(128, "pairs in a step", ge=2)
    lora_rank: int = setting(0, "the rank of the adapter; 0 trains all weights", "--lora", ge=0, le=4096)
    learning_rate: float = setting(
        lambda known: 1e-3 if known["lora_rank"] else 1e-4,
        "the highest learning rate; unless given, 1e-3 for an adapter",
        gt=0,
    )
    similarity_weight: float = setting(10.0, "how much the similarities between pairs count beside the vectors", ge=0)
    warmup_share: float = setting(0.05, "the share of steps in which the learning rate rises", ge=0)
    weight_decay: float = setting(0.01, "the weight decay of AdamW", ge=0)
    max_gradient_norm: float = setting(1.0, "longer gradients are cut to this length", gt=0)
    evaluate_every: int = setting(200, "steps between two evaluations on held-out pairs", ge=1)
    seed: Seed = setting(0, "decides every random choice")


class StaticSettings(DistillationSettings):
    """How a static student is made and trained: its steps cost little and its words are many, so batches are large."""

    epochs: float = setting(10.0, "how often each pair is met", gt=0)
    batch_size: int = setting(2048, "pairs in a step", ge=2)
    learning_rate: float = setting(2e-3, "the highest learning rate", gt=0)
    weight_decay: float = setting(0.0, "the weight decay of AdamW", ge=0)
    words: int = setting(70_000, "words and terms with a vector of their own", ge=1)
    pieces: int = setting(8_000, "pieces of words, for all others", ge=1)
    word_dim: int = setting(128, "dimensions of a word", ge=1)
    hidden: int = setting(512, "dimensions of the hidden layer", ge=1)
    dim: int = setting(256, "dimensions of a relation vector", ge=1)
    piece_share: float = setting(0.1, "how often a known word is read in pieces", ge=0, le=1)
