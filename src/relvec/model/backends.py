"""Opening a model for a few pairs: the quick encoder where it knows the model, else torch."""

from contextlib import suppress
from pathlib import Path

from relvec.hub.models import resolve
from relvec.model.numpy_backend import NotQuickError
from relvec.model.numpy_backend.model import QuickModel
from relvec.model.relation_model import RelationModel


def open_model(model: str | Path, device: str | None = None) -> RelationModel:
    """Load a model by name, folder or hub id; one that is meant for a device is RelBERT's.

    >>> type(open_model(tiny_model)).__name__
    'RelBERT'
    """
    name, place = Path(model).name, model
    if device is None:
        place = resolve(model)
        with suppress(NotQuickError):
            return QuickModel.from_folder(place, name=name)
    from relvec.model.torch_backend import RelBERT

    loaded = RelBERT.from_pretrained(place, device=device)  # by its folder, if known: the hub is not asked twice
    loaded.name = name
    return loaded
