"""relvec analyse: relations a model never saw, and a map of its vectors."""

from pathlib import Path
from typing import Annotated, Any

import typer

from relvec.cli.evaluate import DtypeOption, GridOption, Runs, typed_command
from relvec.cli.options import DataDir, Encoder, Jobs, Json, SeedOption, output_option, with_shared_options
from relvec.cli.output import Table, message, show
from relvec.errors import RelvecError, counted, needed_for, one_of

app = typer.Typer(help="Analyse a model: an unseen category, a map of its vectors.", no_args_is_help=True)


@app.command("unseen-category")
def unseen(
    category: Annotated[str, typer.Option(help="The category to train without; in SemEval, 1 is Class Inclusion.")],
    output: Annotated[Path, output_option("The folder for both models.")],
    config: Annotated[Path | None, typer.Option(help="The recipe file (TOML) of both models.")] = None,
    dataset: Annotated[
        list[str] | None,
        typer.Option(help="A classification dataset by name or folder, by default all; may be repeated."),
    ] = None,
    data_dir: DataDir = None,
    runs: Runs = Path("runs"),
    dtype: DtypeOption = None,
    grid: GridOption = True,
    seed: SeedOption = 0,
    jobs: Jobs = None,
    json: Json = False,
) -> None:
    """Train with and without a category, and compare.

    The comparison is on lexical relation classification. The same command again resumes an interrupted run.
    """
    from relvec.training.recipe import Recipe

    recipe = Recipe.from_toml(config) if config else Recipe()
    with needed_for("This analysis"):
        from relvec.analyses.unseen_category import unseen_category
    where: dict[str, Any] = {"data_dir": data_dir, "runs": runs, "command": typed_command()}
    classifier: dict[str, Any] = {"grid": grid, "seed": seed, "jobs": jobs}
    found = unseen_category(recipe, category, output, dataset or (), dtype=dtype or "float32", **classifier, **where)
    scores = {"trained_on_all": found.trained_on_all, "trained_without": found.trained_without}
    title = f"F1 without category {category} (difference to the model trained on all)"
    show(json, {"category": found.category, **scores}, Table(found.columns(), found.rows(), title))


@app.command("map")
@with_shared_options
def draw_relation_map(
    output: Annotated[Path, output_option("The picture: .svg or .png; a .csv goes beside it.")],
    *,
    data: Annotated[
        str, typer.Option(help="Training data by name or path, or a classification dataset by name.")
    ] = "bundled",
    relation: Annotated[list[str] | None, typer.Option(help="A relation to draw; may be repeated.")] = None,
    method: Annotated[str, typer.Option(help="pca or tsne.")] = "pca",
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of pairs per relation.")] = 60,
    seed: SeedOption = 0,
    data_dir: DataDir = None,
    encoder: Encoder,
    json: Json = False,
) -> None:
    """Plot relation vectors in two dimensions. A .csv holds the coordinates."""
    from relvec.analyses.relation_map import COLUMNS, METHODS, check_picture, draw_map, load_groups, relation_map
    from relvec.model.cached_vectors import ModelVectors

    wanted = one_of("method", method, METHODS)
    check_picture(output)
    coordinates = output.with_suffix(".csv")
    if coordinates.exists() and not coordinates.read_bytes().startswith(",".join(COLUMNS).encode()):
        raise RelvecError(f"The coordinates would take the place of {coordinates}; give the picture another name.")
    groups = load_groups(data, relation or [], data_dir=data_dir, limit=limit)
    found = relation_map(ModelVectors(encoder.load("batch")), groups, wanted, seed)
    draw_map(found, output)
    found.save_coordinates(coordinates)
    if json:
        show(json, {"system": found.system, "method": found.method, "points": found.points()})
    message(f"{counted(len(found.pairs), 'pair')} of {counted(len(groups), 'relation')} -> {output}")
