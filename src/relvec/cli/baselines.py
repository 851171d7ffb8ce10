"""relvec baselines: what a model can be compared with."""

from relvec.baselines.registry import BASELINES
from relvec.cli.options import Json
from relvec.cli.output import print_json, print_table


def baseline_rows() -> list[dict[str, object]]:
    """One row for each name of the registry."""
    return [
        {
            "name": baseline.name,
            "tasks": list(baseline.tasks),
            "settings": dict(baseline.settings),
            "required": list(baseline.required),
            "description": baseline.description,
        }
        for baseline in BASELINES.values()
    ]


def baselines(json: Json = False) -> None:
    """List the baselines and their settings, for `relvec evaluate --baseline`."""
    rows = baseline_rows()
    if json:
        print_json(rows)
        return
    table = [
        [
            baseline.name,
            baseline.description,
            ", ".join(baseline.tasks),
            "; ".join(f"{name}: {meaning}" for name, meaning in baseline.settings.items()) or "-",
        ]
        for baseline in BASELINES.values()
    ]
    print_table(["name", "what it is", "for", "settings (--set name=value)"], table)
