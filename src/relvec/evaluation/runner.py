"""A system on many datasets: each dataset's record is saved as soon as it is there."""

import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from relvec.data.benchmarks.analogy import Part, Question
from relvec.data.benchmarks.classification import checksum
from relvec.data.benchmarks.mapping import MappingProblem
from relvec.data.rated import RatedRelation
from relvec.errors import RelvecError
from relvec.evaluation import mapping
from relvec.evaluation.analogy import OutOfVocabulary, metrics, predict, prediction_rows
from relvec.evaluation.classification import (
    ClassificationResult,
    Parts,
    check_datasets,
    evaluate_classification,
    labels_of,
)
from relvec.evaluation.fine_tuning import FineTuning, evaluate_fine_tuned
from relvec.evaluation.portable import portable_path
from relvec.evaluation.records import Record, find_record, save_record
from relvec.evaluation.systems import System
from relvec.evaluation.validation_loss import validation_loss
from relvec.model.cached_vectors import ModelVectors, PairVectors
from relvec.similarity import Scoring


@dataclass(frozen=True)
class Fallback:
    """Whose answers stand in where a system knows no word, and those answers by dataset."""

    name: str
    answers: Mapping[str, Sequence[int | None]]


def analogy_records(
    system: System,
    questions: Mapping[str, Sequence[Question]],
    part: Part,
    runs: str | Path,
    *,
    scoring: Scoring = "forward",
    out_of_vocabulary: OutOfVocabulary = "wrong",
    fallback: Fallback | None = None,
    command: str = "",
) -> Iterator[Record]:
    """Answer the questions of each dataset and keep what came of it."""
    if system.vectors is None and scoring != "forward":
        raise RelvecError(f"{system.name} compares no vectors, so {scoring} scoring means nothing; leave it out.")
    policy = system.out_of_vocabulary or out_of_vocabulary
    if fallback is not None and policy != "fallback":
        raise RelvecError(f"{system.name} has no unknown words for the answers of {fallback.name}; leave them out.")
    settings: dict[str, Any] = {"scoring": scoring, "out_of_vocabulary": policy}
    if fallback is not None:
        settings["fallback"] = fallback.name
    for dataset, asked in questions.items():
        solver = system.solver_for(dataset, part, asked, scoring)
        answers = None if fallback is None else fallback.answers.get(dataset)
        predictions = predict(asked, solver.scores(asked), policy, answers)
        # Only a solver with settings of its own, perhaps tuned on the dataset, has a configuration to tell.
        configuration = getattr(solver, "configuration", None)
        record = Record(
            task="analogy",
            system=system.name,
            dataset=portable_path(dataset),
            part=part,
            fingerprint=solver.fingerprint,
            settings=settings,
            metrics=metrics(dataset, predictions) | ({"configuration": configuration} if configuration else {}),
            facts=system.facts,
            command=command,
        )
        save_record(record, runs, prediction_rows(predictions))
        yield record


def classification_records(
    system: System,
    datasets: Mapping[str, Parts],
    runs: str | Path,
    *,
    exclude_labels: Collection[str] = (),
    seed: int = 0,
    jobs: int | None = None,
    command: str = "",
    show_progress: bool | None = None,
) -> Iterator[Record]:
    """Train and test a classifier on frozen vectors; a dataset that has its record is not done again."""
    vectors = vectors_of(system)
    settings = {"classifier": "mlp", "seed": seed}

    def evaluate(parts: Parts, excluded: Collection[str], work_folder: Path) -> ClassificationResult:
        return evaluate_classification(
            vectors,
            parts,
            exclude_labels=excluded,
            seed=seed,
            jobs=jobs,
            show_progress=show_progress,
        )

    return _classified(system, vectors, datasets, runs, settings, exclude_labels, command, evaluate)


def fine_tuning_records(
    system: System,
    datasets: Mapping[str, Parts],
    runs: str | Path,
    *,
    exclude_labels: Collection[str] = (),
    recipe: FineTuning | None = None,
    command: str = "",
    show_progress: bool | None = None,
) -> Iterator[Record]:
    """Train the encoder itself with a linear head on each dataset; a dataset that has its record is not done again."""
    vectors = vectors_of(system)
    if not isinstance(vectors, ModelVectors):
        raise RelvecError(f"{system.name} has no encoder to fine-tune; choose a model.")
    recipe = recipe or FineTuning()

    def evaluate(parts: Parts, excluded: Collection[str], work_folder: Path) -> ClassificationResult:
        return evaluate_fine_tuned(
            vectors.model,
            parts,
            recipe,
            exclude_labels=excluded,
            work_folder=work_folder,
            show_progress=show_progress,
        )

    return _classified(system, vectors, datasets, runs, recipe.settings, exclude_labels, command, evaluate)


def _classified(
    system: System,
    vectors: PairVectors,
    datasets: Mapping[str, Parts],
    runs: str | Path,
    settings: dict[str, Any],
    exclude_labels: Collection[str],
    command: str,
    evaluate: Callable[[Parts, Collection[str], Path], ClassificationResult],
) -> Iterator[Record]:
    check_datasets(datasets, exclude_labels)
    for dataset, parts in datasets.items():
        excluded = sorted(labels_of(parts).intersection(exclude_labels))
        blank = Record(
            task="classification",
            system=system.name,
            dataset=portable_path(dataset),
            part="test",
            fingerprint=vectors.fingerprint,
            settings=settings | ({"without": "+".join(excluded)} if excluded else {}),
            metrics={},
            facts=system.facts,
            command=command,
            data=checksum(parts),
        )
        # Unfinished work lies below the records, where nobody takes it for one.
        work = Path(runs) / blank.path.parent / "work" / blank.path.stem
        record = find_record(blank, runs)
        if record is None:
            result = evaluate(parts, excluded, work)
            record = replace(blank, metrics=result.metrics)
            save_record(record, runs, result.predictions)
        _remove(work)
        yield record


def _remove(work: Path) -> None:
    """Remove what the record has made needless, and the folder around it once nothing is under way."""
    shutil.rmtree(work, ignore_errors=True)
    with suppress(OSError):
        work.parent.rmdir()


def mapping_records(
    system: System, problems: Mapping[str, Sequence[MappingProblem]], runs: str | Path, *, command: str = ""
) -> Iterator[Record]:
    """Solve the mapping problems of each dataset."""
    vectors = vectors_of(system)
    for dataset, asked in problems.items():
        solved = mapping.solve(asked, vectors)
        record = Record(
            task="mapping",
            system=system.name,
            dataset=portable_path(dataset),
            part="test",
            fingerprint=vectors.fingerprint,
            settings={},
            metrics=mapping.metrics(solved),
            facts=system.facts,
            command=command,
        )
        save_record(record, runs, mapping.prediction_rows(solved))
        yield record


def loss_record(
    system: System, data: str, relations: Sequence[RatedRelation], runs: str | Path, *, loss: str, command: str = ""
) -> Record:
    """The loss of a model on the held-out pairs of training data."""
    vectors = vectors_of(system)
    if not isinstance(vectors, ModelVectors):
        raise RelvecError(f"{system.name} is no model and has no loss; choose a model.")
    record = Record(
        task="loss",
        system=system.name,
        dataset=portable_path(data),
        part="valid",
        fingerprint=vectors.fingerprint,
        settings={"loss": loss},
        metrics=validation_loss(vectors.model, relations, loss),
        facts=system.facts,
        command=command,
    )
    save_record(record, runs)
    return record


def vectors_of(system: System) -> PairVectors:
    """The vectors of a system that has some."""
    if system.vectors is None:
        raise RelvecError(f"{system.name} answers questions but has no vectors; choose a model or word vectors.")
    return system.vectors
