"""Loading an encoder and its tokenizer from a folder: safetensors first, never code."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoConfig,
    AutoModel,
    AutoTokenizer,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from relvec.errors import RelvecError, errors_as
from relvec.model.numpy_backend.weights import TensorFile
from relvec.model.quantization import INT8_WEIGHTS
from relvec.progress import quiet_transformers


def load_config(folder: Path, **changes: Any) -> PretrainedConfig:
    with _loading(f"{folder / 'config.json'} describes no encoder", "use a folder of transformers"):
        return AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False, **changes)


def load_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    with _loading(f"The tokenizer in {folder} cannot be read", "save it there beside the model"):
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        tokenizer.model_max_length = int(tokenizer.model_max_length)
    if tokenizer.pad_token_id is None and tokenizer.eos_token is not None:
        tokenizer.pad_token = tokenizer.eos_token  # a decoder never looks at what comes after a token
    if tokenizer.pad_token_id is None:
        raise RelvecError(f"The tokenizer in {folder} has no padding token; use an encoder's tokenizer.")
    return tokenizer


def load_weights(folder: Path, config: PretrainedConfig) -> PreTrainedModel:
    """The encoder of a folder, without its unused pooling head."""
    load = _from_int8 if (folder / INT8_WEIGHTS).is_file() else _from_transformers
    model: Any
    with _loading(f"The weights in {folder} cannot be loaded", "fetch them again"):
        model, lacking = load(folder, config)
    missing = sorted(key for key in lacking if not key.startswith("pooler"))
    if missing:
        raise RelvecError(f"The weights in {folder} lack {missing[0]} and {len(missing) - 1} more; fetch them again.")
    if getattr(model, "pooler", None) is not None:
        model.pooler = None
    return model.eval()


def _from_int8(folder: Path, config: PretrainedConfig) -> tuple[PreTrainedModel, Iterable[str]]:
    """The encoder of an int8 file, and the names that the file lacks."""
    file = TensorFile(folder / INT8_WEIGHTS)
    model = AutoModel.from_config(config, dtype=torch.float32)
    names = model.state_dict().keys() & set(file.names())
    missing, _ = model.load_state_dict({name: torch.tensor(file.tensor(name)) for name in names}, strict=False)
    return model, missing


def _from_transformers(folder: Path, config: PretrainedConfig) -> tuple[PreTrainedModel, Iterable[str]]:
    has_safetensors = any(folder.glob("*.safetensors"))
    if not has_safetensors and not any(folder.glob("pytorch_model*.bin")):
        raise RelvecError(f"The folder {folder} holds no weights; it needs a model.safetensors.")
    options: dict[str, Any] = {"use_safetensors": has_safetensors, "weights_only": True, "output_loading_info": True}
    model, report = AutoModel.from_pretrained(
        folder, config=config, dtype=torch.float32, local_files_only=True, trust_remote_code=False, **options
    )
    return model, report["missing_keys"]


@contextmanager
def _loading(problem: str, fix: str) -> Iterator[None]:
    """What transformers and torch say of a broken folder in many ways, as one sentence."""
    with errors_as(problem, fix, Exception), quiet_transformers():
        try:
            yield
        except Exception as error:
            if "ignore_mismatched_sizes" in str(error):  # an option that nobody here can set
                raise ValueError("their sizes are not those of the config.json") from error
            raise


def token_limit(encoder: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> int:
    """The longest sentence, in tokens, that the encoder has positions for."""
    limit = tokenizer.model_max_length
    positions = getattr(encoder.config, "max_position_embeddings", None)
    if positions is not None and positions > 0:
        # RoBERTa and its kin count positions from padding_idx + 1.
        padding_index = getattr(getattr(encoder, "embeddings", None), "padding_idx", None)
        limit = min(limit, positions if padding_index is None else positions - padding_index - 1)
    return int(limit)


def pick_device(device: str | torch.device | None) -> torch.device:
    """The given device, else a GPU if there is one, else the CPU."""
    if device is None:
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    with errors_as(f"The device {device!r} cannot be used here", "try 'cpu'", RuntimeError, AssertionError):
        chosen = torch.device(device)
        torch.empty(0, device=chosen)
    return chosen
