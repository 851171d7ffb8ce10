"""Benchmarks: analogy questions, relation classification, relation mapping, and the loss on held-out pairs."""

from relvec.evaluation.task import TASKS, evaluate

__all__ = ["TASKS", "evaluate"]
