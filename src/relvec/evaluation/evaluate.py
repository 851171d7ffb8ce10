"""Evaluating a model or a baseline with one call."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from relvec.errors import one_of

if TYPE_CHECKING:
    from relvec.evaluation.records import Record
    from relvec.evaluation.systems import System
    from relvec.model.relation_model import RelBERT

TASKS = {
    "analogy": "relvec.evaluation.analogy:Analogy",
    "classification": "relvec.evaluation.classification:Classification",
    "mapping": "relvec.evaluation.mapping:RelationMapping",
    "loss": "relvec.evaluation.validation_loss:ValidationLoss",
}
"""The tasks by name; each is imported when it is used."""


def evaluate(
    model: "str | Path | RelBERT | System",
    task: str = "analogy",
    *,
    datasets: Sequence[str] = (),
    data_dir: str | Path | None = None,
    runs: str | Path | None = None,
    **settings: Any,
) -> "list[Record]":
    """Score a model (or a system such as a baseline) on a task: one record for each dataset.

    `datasets` are names or paths, by default all that the task has. `settings` are those of the task, such as
    `scoring="bidirectional"` for analogy questions or `seed=1` for classification. Records are kept in the folder
    `runs` if one is given.

    >>> _ = Path("mine.jsonl").write_text('{"stem": ["a", "b"], "choice": [["c", "d"], ["a", "b"]], "answer": 1}')
    >>> (record,) = evaluate(tiny_model, "analogy", datasets=["mine.jsonl"], scoring="bidirectional")
    >>> record.metrics["accuracy"]
    100.0
    """
    from relvec.evaluation.systems import System, model_system, vector_system
    from relvec.evaluation.task import run_task
    from relvec.model.cached_vectors import ModelVectors

    module, _, name = TASKS[one_of("task", task, TASKS)].partition(":")
    chosen = getattr(import_module(module), name)(**settings)
    data = chosen.load(datasets, data_dir)
    if isinstance(model, str | Path):
        system = model_system(str(model))
    else:
        system = model if isinstance(model, System) else vector_system(ModelVectors(model), {"kind": "relation model"})
    if runs is not None:
        return list(run_task(chosen, system, data, runs))
    with TemporaryDirectory() as folder:
        return list(run_task(chosen, system, data, folder))
