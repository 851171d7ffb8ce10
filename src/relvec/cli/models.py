"""relvec models: every model name that can be used."""

from relvec.cli.options import Json
from relvec.cli.output import print_json, print_table
from relvec.hub.catalogue import BASE_MODELS, BUNDLED_MODELS, HUB_MODELS, Measured
from relvec.hub.models import base_folder


def model_rows() -> list[dict[str, object]]:
    """One row for each name in the catalogue: what it is, its size, what was measured, its source, if it is here."""
    rows: list[dict[str, object]] = []
    for bundled in BUNDLED_MODELS.values():
        base = BASE_MODELS[bundled.base]
        rows.append(
            {
                "name": bundled.name,
                "kind": "relation model",
                "parameters": base.parameters,
                "download": base.download_size,
                "source": f"bundled, over {base.name}",
                "here": base_folder(base).is_dir(),
                "description": bundled.description,
                **_measured(bundled.measured),
            }
        )
    for base in BASE_MODELS.values():
        rows.append(
            {
                "name": base.name,
                "kind": "base encoder",
                "parameters": base.parameters,
                "download": base.download_size,
                "source": f"hub {base.hub_id}, or the package index",
                "here": base_folder(base).is_dir(),
                "description": base.description,
                **_measured(base.measured),
            }
        )
    for published in HUB_MODELS.values():
        rows.append(
            {
                "name": published.name,
                "kind": "relation model",
                "parameters": published.parameters,
                "download": published.parameters * 4,
                "source": "hub",
                "here": False,
                "description": published.description,
                **_measured(published.measured),
            }
        )
    return rows


def models(json: Json = False) -> None:
    """List the model names that can be used, their size and where they come from."""
    rows = model_rows()
    if json:
        print_json(rows)
        return
    table = [
        [
            str(row["name"]),
            str(row["kind"]),
            _millions(row["parameters"], "M"),
            _millions(row["download"], " MB"),
            "-" if row["speed"] is None else f"{row['speed']:g}x",
            "-" if row["analogy_accuracy"] is None else f"{row['analogy_accuracy']:.1f} ({row['scoring']})",
            "yes" if row["here"] else "no",
            str(row["source"]),
            str(row["description"]),
        ]
        for row in rows
    ]
    nothing = [""] * 5
    saved = "save_pretrained, or the published format"
    table.append(["<folder>", "either", *nothing, "a saved model of yours", saved])
    table.append(["<owner/name>", "either", *nothing, "hub", "any encoder or relation model of the hub"])
    columns = ["name", "kind", "parameters", "download", "speed", "analogies (%)", "here", "source", "description"]
    print_table(columns, table)


def _measured(measured: Measured) -> dict[str, object]:
    has_accuracy = measured.analogy_accuracy is not None
    return {
        "speed": measured.speed,
        "analogy_accuracy": measured.analogy_accuracy,
        "scoring": measured.scoring if has_accuracy else None,
    }


def _millions(number: object, unit: str) -> str:
    return f"{int(str(number)) / 1e6:.0f}{unit}" if number else "-"
