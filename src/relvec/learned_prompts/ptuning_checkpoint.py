"""Where a run of P-tuning stands, kept in one file: tensors, and the rest as JSON in its header."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from relvec.errors import RelvecError
from relvec.files import written_whole

_WEIGHT, _OPTIMIZER, _BEST = "weight.", "optimizer.", "best"


@dataclass
class Progress:
    """Steps done, the step with the lowest validation loss, and the cost so far."""

    step: int = 0
    best_step: int = 0
    best_loss: float = float("inf")
    encodings: int = 0
    triple_encodings: int = 0
    seconds: float = 0.0


def save_checkpoint(
    path: Path,
    job: str,
    progress: Progress,
    triggers: nn.Module,
    optimizer: torch.optim.Optimizer,
    best: Tensor,
) -> None:
    """Write all that a run needs to go on; `best` holds the embeddings of the best step, `job` says which run it is."""
    tensors = {f"{_WEIGHT}{name}": weight for name, weight in triggers.state_dict().items()} | {_BEST: best}
    for number, moments in optimizer.state_dict()["state"].items():
        tensors |= {f"{_OPTIMIZER}{number}.{name}": moment for name, moment in moments.items()}
    # A weight may be a part of a larger piece of memory, which the file format refuses.
    own = {name: tensor.detach().cpu().clone() for name, tensor in tensors.items()}
    with written_whole(path) as partial:
        try:
            save_file(own, partial, metadata={"job": job, "progress": json.dumps(asdict(progress))})
        except (OSError, SafetensorError) as error:
            raise RelvecError(f"Cannot write {path}; free space and start again.") from error


def load_checkpoint(
    path: Path, job: str, triggers: nn.Module, optimizer: torch.optim.Optimizer
) -> tuple[Progress, Tensor] | None:
    """Bring trigger encoder and optimiser to where the run was, and return its progress and its best embeddings.

    None if there is no such file.
    """
    if not path.is_file():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors: dict[str, Tensor] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise RelvecError(f"{path} is no checkpoint of P-tuning; remove it to start again.") from error
    if metadata.get("job") != job:
        problem = f"{path} belongs to a run with other settings or other data"
        raise RelvecError(f"{problem}; remove it, or choose another output.")
    triggers.load_state_dict({name: tensors[f"{_WEIGHT}{name}"] for name in triggers.state_dict()})
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        if name.startswith(_OPTIMIZER):
            number, moment = name.removeprefix(_OPTIMIZER).split(".")
            state.setdefault(int(number), {})[moment] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
    return Progress(**json.loads(metadata["progress"])), tensors[_BEST]
