"""relvec prompt: choose a manual template, or learn a prompt while the language model is frozen."""

from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from relvec.cli.options import DataDir, Device, Dtype, Json, with_shared_options
from relvec.cli.output import print_json, print_table
from relvec.io.paths import expanded
from relvec.training.limits import LARGEST_SEED

if TYPE_CHECKING:
    from relvec.data.rated import RatedRelation
    from relvec.prompts.learned import PromptResult

app = typer.Typer(help="Choose a manual template, or learn a prompt: AutoPrompt, P-tuning.", no_args_is_help=True)

LengthsOption = Annotated[str, typer.Option("--lengths", help="Triggers before, between and after the two words.")]
Output = Annotated[Path, typer.Option("--output", "-o", help="The folder for the prompt; `relvec train` takes it.")]


@dataclass(frozen=True)
class Subject:
    """What a prompt is for: an encoder, and the relations whose loss decides."""

    base: Annotated[str, typer.Option(help="The frozen encoder: a name, a folder or a hub id.")] = "mpnet"
    data: Annotated[
        list[str], typer.Option(help="semeval2012, bundled, a file, a folder or a hub dataset; may be repeated.")
    ] = ("semeval2012",)  # type: ignore[assignment]  # a dataclass refuses a list

    exclude_benchmark_pairs: Annotated[
        bool, typer.Option("--exclude-benchmark-pairs", help="Leave out what the benchmarks of --data-dir have.")
    ] = False

    @property
    def source(self) -> dict[str, Any]:
        """What prompt.json says of it."""
        return {"data": list(self.data), "exclude_benchmark_pairs": self.exclude_benchmark_pairs}

    def relations(self, data_dir: Path | None) -> "list[RatedRelation]":
        from relvec.data.overlap import benchmark_folder, without_benchmarks
        from relvec.data.sources import load

        relations = [relation for name in self.data for relation in load(name, data_dir=data_dir)]
        if not self.exclude_benchmark_pairs:
            return relations
        # All methods shall be judged on the same relations, and P-tuning needs negatives.
        return without_benchmarks(relations, benchmark_folder(data_dir), needs_negatives=True)


@dataclass(frozen=True)
class Learning:
    """What all methods that learn a prompt ask for."""

    pooling: Annotated[str, typer.Option(help="average or average_no_mask.")] = "average"
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Decides every random choice.")] = 0


@dataclass(frozen=True)
class Run:
    """Where the data is, what computes, and how the result is shown."""

    data_dir: DataDir = None
    device: Device = None
    json: Json = False


@app.command()
@with_shared_options
def manual(
    subject: Subject,
    *,
    pooling: Annotated[str, typer.Option(help="average, average_no_mask or mask.")] = "average",
    run: Run,
) -> None:
    """The validation loss of the paper's five manual templates, before any fine-tuning."""
    relations = subject.relations(run.data_dir)
    from relvec.learned_prompts.manual import manual_losses

    losses = manual_losses(subject.base, relations, pooling=pooling, device=run.device)
    best = min(losses, key=lambda each: each.loss)
    if run.json:
        rows = [{"number": each.number, "template": each.template, "validation_loss": each.loss} for each in losses]
        print_json({"best": best.number, "templates": rows})
        return
    print_table(
        ["template", "validation loss", "", "text"],
        [[str(each.number), f"{each.loss:.4f}", "best" if each is best else "", each.template] for each in losses],
        title=f"Manual templates for {subject.base}",
    )


@app.command()
@with_shared_options
def autoprompt(
    output: Output,
    subject: Subject,
    *,
    lengths: LengthsOption = "8,2,2",
    iterations: Annotated[int, typer.Option(help="How often a trigger is drawn and its candidates are tried.")] = 50,
    candidates: Annotated[int, typer.Option(help="How many tokens are tried for a trigger.")] = 50,
    exhaustive: Annotated[
        bool, typer.Option("--exhaustive", help="Try every candidate on all data; drop none early.")
    ] = False,
    dtype: Dtype = "float32",
    learning: Learning,
    run: Run,
) -> None:
    """Search vocabulary tokens around the words by gradient; the same command again goes on after an interruption."""
    own = {"iterations": iterations, "candidates": candidates, "exhaustive": exhaustive, "dtype": dtype}
    _learn("autoprompt", output, subject, lengths, own, learning, run)


@app.command()
@with_shared_options
def ptuning(
    output: Output,
    subject: Subject,
    *,
    lengths: LengthsOption = "8,2,2",
    epochs: Annotated[float, typer.Option(help="How often all training triples are met.")] = 2.0,
    steps: Annotated[int | None, typer.Option(help="How many steps to train, in place of epochs.")] = None,
    learning_rate: Annotated[float, typer.Option(help="The learning rate.")] = 1e-3,
    dtype: Dtype = "float32",
    learning: Learning,
    run: Run,
) -> None:
    """Train the embeddings of new tokens around the words; the same command again goes on after an interruption."""
    own = {"epochs": epochs, "steps": steps, "learning_rate": learning_rate, "dtype": dtype}
    _learn("ptuning", output, subject, lengths, own, learning, run)


@app.command()
@with_shared_options
def search(
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder for the prompts, one folder each.")] = Path(
        "prompts"
    ),
    method: Annotated[str, typer.Option(help="autoprompt or ptuning.")] = "autoprompt",
    subject: Subject,
    lengths: Annotated[str, typer.Option("--lengths", help="Three numbers or ranges.")] = "8-9,1-2,1-2",
    iterations: Annotated[int | None, typer.Option(help="autoprompt: how often candidates are tried.")] = None,
    candidates: Annotated[int | None, typer.Option(help="autoprompt: how many tokens are tried.")] = None,
    exhaustive: Annotated[bool | None, typer.Option("--exhaustive", help="autoprompt: drop none early.")] = None,
    dtype: Annotated[
        str | None, typer.Option(help="float32 or bfloat16, half the time on hardware that has it.")
    ] = None,
    epochs: Annotated[float | None, typer.Option(help="ptuning: how often all triples are met.")] = None,
    steps: Annotated[int | None, typer.Option(help="ptuning: how many steps, in place of epochs.")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="ptuning: the learning rate.")] = None,
    learning: Learning,
    run: Run,
) -> None:
    """Learn a prompt for each of several lengths; the best is that with the lowest validation loss."""
    from relvec.prompts.lengths import parse_grid

    grid = parse_grid(lengths)
    output = expanded(output)
    own = {
        "iterations": iterations,
        "candidates": candidates,
        "exhaustive": exhaustive,
        "dtype": dtype,
        "epochs": epochs,
        "steps": steps,
        "learning_rate": learning_rate,
    }
    given: dict[str, Any] = {name: value for name, value in own.items() if value is not None}
    from relvec.learned_prompts.grid import check_settings, prompt_folder
    from relvec.learned_prompts.grid import search as search_lengths

    check_settings(method, given)
    relations = subject.relations(run.data_dir)
    results = search_lengths(method, subject.base, relations, grid, output, **_shared(subject, learning, run), **given)
    if run.json:
        print_json([_as_json(result, prompt_folder(output, result.lengths)) for result in results])
        return
    print_table(
        ["lengths", "train loss", "validation loss", "", "prompt"],
        [
            [
                str(result.lengths),
                f"{result.train_loss:.4f}",
                f"{result.validation_loss:.4f}",
                "best" if result is results[0] else "",
                result.text,
            ]
            for result in results
        ],
        title=f"{method} for {subject.base}",
    )
    typer.echo(f"relvec train --prompt {quote(str(prompt_folder(output, results[0].lengths)))}", err=True)


def _learn(
    method: str, output: Path, subject: Subject, lengths: str, own: dict[str, Any], learning: Learning, run: Run
) -> None:
    """Learn one prompt with a method's own settings, and print it."""
    from relvec.prompts.lengths import Lengths

    chosen, output = Lengths.parse(lengths), expanded(output)
    relations = subject.relations(run.data_dir)
    from relvec.learned_prompts.grid import METHODS

    result = METHODS[method](subject.base, relations, chosen, output, **_shared(subject, learning, run), **own)
    _print_result(result, output, run)


def _shared(subject: Subject, learning: Learning, run: Run) -> dict[str, Any]:
    return {"pooling": learning.pooling, "seed": learning.seed, "source": subject.source, "device": run.device}


def _print_result(result: "PromptResult", output: Path, run: Run) -> None:
    if run.json:
        print_json(_as_json(result, output))
        return
    rows = [
        ["prompt", result.text],
        ["training loss", f"{result.history[0]['loss']:.4f} -> {result.train_loss:.4f}"],
        ["validation loss", f"{_start(result)}{result.validation_loss:.4f}"],
        ["pairs encoded", f"{result.encodings:,}"],
        ["with every triple by itself", f"{result.triple_encodings:,} ({_times(result)} times as many)"],
        ["seconds", f"{result.seconds:,.0f}"],
        ["folder", str(output)],
    ]
    print_table(["what", "value"], rows, title=f"{result.method} for {result.base}")


def _start(result: "PromptResult") -> str:
    """The validation loss before learning, where it was computed."""
    loss = result.history[0].get("validation_loss")
    return "" if loss is None else f"{loss:.4f} -> "


def _as_json(result: "PromptResult", folder: Path) -> dict[str, Any]:
    return {**result.as_dict(), "folder": str(folder)}


def _times(result: "PromptResult") -> str:
    return f"{result.triple_encodings / result.encodings:,.0f}"
