"""Loading an encoder and its tokenizer from a folder: safetensors first, never code."""

from collections.abc import Iterable
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

from relvec.errors import RelvecError
from relvec.model.numpy_backend.weights import TensorFile
from relvec.model.quantization import INT8_WEIGHTS
from relvec.progress import quiet_transformers


def load_config(folder: Path, **changes: Any) -> PretrainedConfig:
    try:
        return AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False, **changes)
    except Exception as error:  # each kind of broken setting has an error class of its own
        path = folder / "config.json"
        raise RelvecError(f"{path} describes no encoder ({_brief(error)}); use a folder of transformers.") from error


def load_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # the tokenizers library raises bare Exception for a broken file
        raise RelvecError(f"The tokenizer in {folder} cannot be read; save it there beside the model.") from error
    if tokenizer.pad_token_id is None and tokenizer.eos_token is not None:
        tokenizer.pad_token = tokenizer.eos_token  # a decoder never looks at what comes after a token
    if tokenizer.pad_token_id is None:
        raise RelvecError(f"The tokenizer in {folder} has no padding token; use an encoder's tokenizer.")
    return tokenizer


def load_weights(folder: Path, config: PretrainedConfig) -> PreTrainedModel:
    """The encoder of a folder, without its unused pooling head."""
    load = _from_int8 if (folder / INT8_WEIGHTS).is_file() else _from_transformers
    model: Any
    model, lacking = load(folder, config)
    missing = sorted(key for key in lacking if not key.startswith("pooler"))
    if missing:
        raise RelvecError(f"The weights in {folder} lack {missing[0]} and {len(missing) - 1} more; fetch them again.")
    if getattr(model, "pooler", None) is not None:
        model.pooler = None
    return model.eval()


def _from_int8(folder: Path, config: PretrainedConfig) -> tuple[PreTrainedModel, Iterable[str]]:
    """The encoder of an int8 file, and the names that the file lacks."""
    try:
        file = TensorFile(folder / INT8_WEIGHTS)
        model = AutoModel.from_config(config, dtype=torch.float32)
        names = model.state_dict().keys() & set(file.names())
        missing, _ = model.load_state_dict({name: torch.tensor(file.tensor(name)) for name in names}, strict=False)
    except Exception as error:  # a file that is cut off breaks in numpy, in JSON or in torch
        raise RelvecError(_broken(folder, error)) from error
    return model, missing


def _from_transformers(folder: Path, config: PretrainedConfig) -> tuple[PreTrainedModel, Iterable[str]]:
    has_safetensors = any(folder.glob("*.safetensors"))
    if not has_safetensors and not any(folder.glob("pytorch_model*.bin")):
        raise RelvecError(f"The folder {folder} holds no weights; it needs a model.safetensors.")
    options: dict[str, Any] = {"use_safetensors": has_safetensors, "weights_only": True, "output_loading_info": True}
    try:
        with quiet_transformers():
            model, report = AutoModel.from_pretrained(
                folder, config=config, dtype=torch.float32, local_files_only=True, trust_remote_code=False, **options
            )
    except Exception as error:  # safetensors, pickle and torch each have their own errors for a broken file
        raise RelvecError(_broken(folder, error)) from error
    return model, report["missing_keys"]


def _broken(folder: Path, error: Exception) -> str:
    return f"The weights in {folder} cannot be loaded ({_brief(error)}); fetch them again."


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
    try:
        chosen = torch.device(device)
        torch.empty(0, device=chosen)
    except (RuntimeError, AssertionError) as error:
        raise RelvecError(f"The device {device!r} cannot be used here ({_brief(error)}); try 'cpu'.") from error
    return chosen


def _brief(error: Exception) -> str:
    return str(error).strip().split("\n")[0][:200].rstrip(".") or type(error).__name__
