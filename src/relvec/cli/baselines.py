"""relvec baselines: what a model can be compared with."""

from relvec.cli.options import Json
from relvec.cli.output import show


def baselines(json: Json = False) -> None:
    """List the baselines and their settings, for `relvec evaluate --baseline`."""
    from relvec.baselines.registry import BASELINES

    listed = [
        {
            "name": baseline.name,
            "tasks": list(baseline.tasks),
            "settings": baseline.setting_texts(),
            "required": [name for name, field in baseline.settings.model_fields.items() if field.is_required()],
            "description": baseline.description,
        }
        for baseline in BASELINES.values()
    ]
    rows = [
        [
            baseline.name,
            baseline.description,
            ", ".join(baseline.tasks),
            "; ".join(f"{name}: {meaning}" for name, meaning in baseline.setting_texts().items()) or "-",
        ]
        for baseline in BASELINES.values()
    ]
    show(json, listed, ["name", "what it is", "for", "settings (--set name=value)"], rows)
