"""relvec reproduce: the whole paper, or a plan of your own, from one command."""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from relvec.cli.options import DataDir, DryRun, Json, SeedOption, output_option
from relvec.cli.output import Table, show
from relvec.errors import RelvecError, needed_for
from relvec.io.files import atomic_write, data_folder
from relvec.progress import progress_bar
from relvec.settings import named_values
from relvec.storage.lock import output_lock

if TYPE_CHECKING:
    from pandas import DataFrame

    from relvec.reproduction.estimates import Estimate
    from relvec.reproduction.plan import Step
    from relvec.reproduction.scheduler import Finished
    from relvec.reproduction.verdicts import Verdict

_GIGABYTE = 1e9


def reproduce(
    output: Annotated[Path, output_option("The folder for models, records and the report.")] = Path("paper"),
    only: Annotated[list[str] | None, typer.Option(help='A table, such as "table 2"; may be repeated.')] = None,
    base: Annotated[
        list[str] | None, typer.Option(help="A language model in place of the paper's three; may be repeated.")
    ] = None,
    profile: Annotated[
        str, typer.Option(help="full: the paper's settings, on a GPU; laptop: a smaller recipe.")
    ] = "full",
    given: Annotated[
        list[str] | None,
        typer.Option(
            "--input", help="A file that some steps need, as name=path; may be repeated.", metavar="NAME=PATH"
        ),
    ] = None,
    plan: Annotated[Path | None, typer.Option(help="A plan of your own (TOML); by default the paper's.")] = None,
    seed: SeedOption = 0,
    data_dir: DataDir = None,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Run the paper's experiments and compare every number.

    The same command again resumes an interrupted run. A step that fails does not stop the others.
    """
    with needed_for("Reproducing the paper", "all"):
        import accelerate  # noqa: F401
        import pandas  # noqa: F401
        import sklearn  # noqa: F401

        from relvec.model.backends import has_gpu
        from relvec.reproduction import checks, estimates
        from relvec.reproduction.plan import Plan, steps_of
        from relvec.reproduction.scheduler import run_in_process_of_its_own, run_steps
        from relvec.storage.journal import Journal

    chosen = Plan.load(plan)
    inputs = _inputs(given or [], chosen.inputs)
    runs = output / "runs"
    values = {"out": str(output), "runs": str(runs), "seed": seed, **inputs}
    steps, left_out = steps_of(chosen, profile, values, bases=base or [], only=only or [], given=inputs)
    machine, speed = "here", estimates.measured_speed()
    if chosen.profile(profile).needs_gpu and not has_gpu():
        machine, speed = f"on a {estimates.REFERENCE_GPU}", estimates.REFERENCE_SPEED
    costs = [estimates.estimate(step, speed) for step in steps]
    missing = list(checks.problems(steps, chosen.profile(profile), inputs, data_dir))
    if dry_run:
        summary = _plan_json(steps, costs, left_out) | {"missing": missing}
        show(json, summary, *_plan_tables(steps, costs, left_out, machine))
    if missing:
        raise RelvecError("\n".join(missing))
    if dry_run:
        return
    job, data = "reproduce", data_folder(data_dir)
    if data is not None:
        os.environ["RELVEC_DATA"] = str(data.resolve())
        job = f"reproduce with {data.resolve()}"
    done: list[Finished] = []
    with output_lock(output / "journal.jsonl"):
        journal = Journal(output / "journal.jsonl", job)
        names = {step.name: cost for step, cost in zip(steps, costs, strict=True)}
        with progress_bar(round(sum(cost.seconds for cost in costs)), "Reproducing", unit="s") as bar:

            def run(words: Sequence[str], log: Path) -> int:
                bar.set_postfix_str(log.stem)
                return run_in_process_of_its_own(words, log)

            for finished in run_steps(steps, journal, output / "logs", run):
                done.append(finished)
                bar.update(round(names[finished.step.name].seconds))
                bar.write(f"{len(done)} of {len(steps)}: {_status(finished)}", file=typer.get_text_stream("stderr"))
    _finish(done, left_out, runs, output, json)


def _inputs(given: Sequence[str], known: dict[str, str]) -> dict[str, str]:
    inputs = named_values(given, "--input")
    if unknown := inputs.keys() - known.keys():
        listed = "; ".join(f"{key}: {meaning}" for key, meaning in known.items()) or "none"
        raise RelvecError(f"The plan has no input {min(unknown)}; write --input name=path for one of {listed}.")
    return inputs


def _plan_tables(
    steps: "Sequence[Step]", costs: "Sequence[Estimate]", left_out: "Sequence[Step]", machine: str
) -> list[Table]:
    from relvec.reproduction.estimates import total

    rows: list[list[Any]] = [
        [number, step.name, ", ".join(step.tables), _hours(cost), f"{cost.bytes / _GIGABYTE:.1f}"]
        for number, (step, cost) in enumerate(zip(steps, costs, strict=True), start=1)
    ]
    whole = total(costs)
    rows.append(["", "all", "", _hours(whole), f"{whole.bytes / _GIGABYTE:.1f}"])
    tables = [Table(["", "step", "for", "hours", "GB"], rows, f"What would run; hours {machine}")]
    if left_out:
        needed = Counter(" ".join(f"--input {name}=PATH" for name in step.inputs) for step in left_out)
        tables.append(Table(["left out without", "steps"], needed.items(), "What more files would add"))
    return tables


def _plan_json(steps: "Sequence[Step]", costs: "Sequence[Estimate]", left_out: "Sequence[Step]") -> dict[str, Any]:
    return {
        "steps": [
            {
                "step": step.name,
                "command": ["relvec", *step.command],
                "needs": step.needs,
                "for": step.tables,
                **asdict(cost),
            }
            for step, cost in zip(steps, costs, strict=True)
        ],
        "left_out": {step.name: step.inputs for step in left_out},
    }


def _hours(cost: "Estimate") -> str:
    return f"{cost.seconds / 3600:.2f}"


def _status(finished: "Finished") -> str:
    reason = f" ({finished.reason})" if finished.reason else ""
    took = f" in {finished.seconds:,.0f} s" if finished.seconds else ""
    return f"{finished.step.name}: {finished.state}{took}{reason}"


def _finish(done: "Sequence[Finished]", left_out: "Sequence[Step]", runs: Path, output: Path, json: bool) -> None:
    """The report, the verdicts, what became of each step, and exit code 1 if one failed."""
    from relvec.evaluation.records import RECORDS_NAME, load_records
    from relvec.report.page import write_report
    from relvec.reproduction.verdicts import verdicts

    found: list[Verdict] = []
    if (runs / RECORDS_NAME).is_file():
        write_report(runs, output)
        found = verdicts(load_records(runs))
        with atomic_write(output / "verdicts.csv") as partial:
            _table(found).to_csv(partial, index=False, float_format="%.2f")
    failed = [each for each in done if each.state in ("failed", "skipped")]
    tables = [
        Table(["table", "cells", "within noise", "mean difference"], _summary(found), "Beside the published numbers")
    ]
    if failed:
        rows = [[each.step.name, each.state, each.reason] for each in failed]
        tables.append(Table(["step", "state", "why"], rows, "What failed"))
    summary = {
        "steps": {each.step.name: each.state for each in done},
        "left_out": [step.name for step in left_out],
        "verdicts": [asdict(each) | {"is_within": each.is_within} for each in found],
    }
    within = sum(each.is_within for each in found)
    steps = f"{len(done) - len(failed)} of {len(done)} steps"
    note = f"{steps}, {within} of {len(found)} published cells within seed noise -> {output}"
    show(json, summary, *tables, note=note)
    if failed:
        raise typer.Exit(1)


def _table(found: "Sequence[Verdict]") -> "DataFrame":
    from pandas import DataFrame

    columns = ["table", "system", "cell", "published", "measured", "difference", "noise", "verdict"]
    table = DataFrame([asdict(each) for each in found], columns=columns)
    table["difference"] = table["measured"] - table["published"]
    table["verdict"] = ["within" if each.is_within else "outside" for each in found]
    return table


def _summary(found: "Sequence[Verdict]") -> list[list[str]]:
    groups = _table(found).groupby("table", sort=False)
    return [
        [str(table), str(len(cells)), str(sum(cells["verdict"] == "within")), f"{cells['difference'].mean():+.1f}"]
        for table, cells in groups
    ]
