"""relvec prompt: choose a manual template, or learn a prompt while the language model is frozen."""

from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

from relvec.cli.options import Run, output_option, with_shared_options
from relvec.cli.output import Table, facts_table, show
from relvec.io.files import expanded
from relvec.learned_prompts.settings import AnySettings, AutoPromptSettings, PromptSettings, PTuningSettings, Subject
from relvec.prompts.learned import Lengths, PromptResult, parse_grid

app = typer.Typer(help="Choose a manual template, or learn a prompt.", no_args_is_help=True)

LengthsOption = Annotated[str, typer.Option("--lengths", help="Triggers before, between and after the two words.")]
Output = Annotated[Path, output_option("The folder for the prompt; `relvec train` takes it.")]


@app.command()
@with_shared_options
def manual(
    subject: Subject,
    *,
    pooling: Annotated[str, typer.Option(help="average, average_no_mask or mask.")] = "average",
    run: Run,
) -> None:
    """Compare the five manual templates by validation loss. Nothing is fine-tuned."""
    relations = subject.relations(run.data_dir)
    from relvec.learned_prompts.objective import manual_losses

    losses = manual_losses(subject.base, relations, pooling=pooling, device=run.device)
    best = min(losses, key=lambda each: each.loss)
    found = [{"number": each.number, "template": each.template, "validation_loss": each.loss} for each in losses]
    rows = [[str(each.number), f"{each.loss:.4f}", "best" if each is best else "", each.template] for each in losses]
    table = Table(["template", "validation loss", "", "text"], rows, f"Manual templates for {subject.base}")
    show(run.json, {"best": best.number, "templates": found}, table)


@app.command()
@with_shared_options
def autoprompt(
    output: Output, subject: Subject, *, lengths: LengthsOption = "8,2,2", settings: AutoPromptSettings, run: Run
) -> None:
    """Search vocabulary tokens for a prompt, guided by gradients. The same command again resumes an interrupted run."""
    _learn("autoprompt", output, subject, lengths, settings, run)


@app.command()
@with_shared_options
def ptuning(
    output: Output, subject: Subject, *, lengths: LengthsOption = "8,2,2", settings: PTuningSettings, run: Run
) -> None:
    """Train embeddings of new tokens for the prompt. The same command again resumes an interrupted run."""
    _learn("ptuning", output, subject, lengths, settings, run)


@app.command()
@with_shared_options
def search(
    *,
    output: Annotated[Path, output_option("The folder for the prompts, one folder each.")] = Path("prompts"),
    method: Annotated[str, typer.Option(help="autoprompt or ptuning.")] = "autoprompt",
    subject: Subject,
    lengths: Annotated[str, typer.Option("--lengths", help="Three numbers or ranges.")] = "8-9,1-2,1-2",
    settings: AnySettings,
    run: Run,
) -> None:
    """Learn prompts of several lengths. The one with the lowest validation loss is the best."""
    grid, output = parse_grid(lengths), expanded(output)
    given = settings.model_dump(exclude_unset=True)
    from relvec.learned_prompts.grid import checked_settings, prompt_folder
    from relvec.learned_prompts.grid import search as search_lengths

    checked_settings(method, given)
    options = {"source": subject.source, "device": run.device, **given}
    results = search_lengths(method, subject.base, subject.relations(run.data_dir), grid, output, **options)
    folders = [prompt_folder(output, result.lengths) for result in results]
    marks = ["best", *([""] * len(results[1:]))]
    rows = [
        [result.lengths, f"{result.train_loss:.4f}", f"{result.validation_loss:.4f}", mark, result.text]
        for result, mark in zip(results, marks, strict=True)
    ]
    show(
        run.json,
        [_as_json(result, folder) for result, folder in zip(results, folders, strict=True)],
        Table(["lengths", "train loss", "validation loss", "", "prompt"], rows, f"{method} for {subject.base}"),
        note=f"relvec train --prompt {quote(str(folders[0]))}",
    )


def _learn(method: str, output: Path, subject: Subject, lengths: str, settings: PromptSettings, run: Run) -> None:
    """Learn one prompt, and print it."""
    chosen, output = Lengths.parse(lengths), expanded(output)
    relations = subject.relations(run.data_dir)
    from relvec.learned_prompts.grid import learn

    options = {"source": subject.source, "device": run.device, **settings.model_dump(exclude_unset=True)}
    result = learn(method, subject.base, relations, chosen, output, **options)
    start = result.history[0].get("validation_loss")
    before = "" if start is None else f"{start:.4f} -> "
    times = f"{result.triple_encodings / result.encodings:,.0f}"
    facts = {
        "prompt": result.text,
        "training loss": f"{result.history[0]['loss']:.4f} -> {result.train_loss:.4f}",
        "validation loss": f"{before}{result.validation_loss:.4f}",
        "pairs encoded": f"{result.encodings:,}",
        "with every triple by itself": f"{result.triple_encodings:,} ({times} times as many)",
        "seconds": f"{result.seconds:,.0f}",
        "folder": output,
    }
    show(run.json, _as_json(result, output), facts_table(facts, title=f"{result.method} for {result.base}"))


def _as_json(result: PromptResult, folder: Path) -> dict[str, Any]:
    return {**result.as_dict(), "folder": str(folder)}
