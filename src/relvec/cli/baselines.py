"""relvec baselines: what a model can be compared with."""

from relvec.cli.options import Json
from relvec.cli.output import Table, show


def baselines(json: Json = False) -> None:
    """List the baselines for `relvec evaluate`, and their settings."""
    from relvec.baselines.registry import BASELINES

    listed, rows = [], []
    for baseline in BASELINES.values():
        meanings = baseline.setting_texts()
        required = [name for name, field in baseline.settings.model_fields.items() if field.is_required()]
        row = {"name": baseline.name, "tasks": list(baseline.tasks), "settings": meanings, "required": required}
        listed.append({**row, "description": baseline.description})
        settings = "; ".join(f"{name}: {meaning}" for name, meaning in meanings.items()) or None
        rows.append([baseline.name, baseline.description, ", ".join(baseline.tasks), settings])
    show(json, listed, Table(["name", "what it is", "for", "settings (--set name=value)"], rows))
