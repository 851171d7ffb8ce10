"""A folder with a model's graph for other programs: what they need besides is its tokenizer and its prompt."""

import shutil
from pathlib import Path
from string import Template

from relvec.model.onnx_backend.model import OnnxRelBERT
from relvec.model.saving import atomic_model_folder
from relvec.pooling import POOLINGS

GRAPH = "model.onnx"
TOKENIZER = ("tokenizer.json", "tokenizer_config.json")

_README = Template("""\
# $name as ONNX ($dtype)

`model.onnx` turns prompts with a pair of words in them into relation vectors.

| | name | shape | |
| --- | --- | --- | --- |
| input | `input_ids` | int64 [pairs, length] | the tokens of a prompt, padded with $padding |
| input | `attention_mask` | int64 [pairs, length] | 1 for a token, 0 for padding |
| output | `relation_vectors` | float32 [pairs, $dim] | the pooled vectors (`$pooling`: $counted) |
| output | `last_hidden_state` | float32 [pairs, length, $dim] | the vectors of all tokens |

The prompt is `$prompt`, where the two words take the places of `[h]` and `[t]`. `tokenizer.json` cuts it into tokens:

```python
import numpy as np
import onnxruntime
from tokenizers import Tokenizer

tokenizer = Tokenizer.from_file("tokenizer.json")
tokenizer.no_padding()
session = onnxruntime.InferenceSession("model.onnx")


def relation_vector(head, tail):
    text = $text.replace("[h]", head).replace("[t]", tail)
    ids = np.array([tokenizer.encode(text).ids])
    inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
    return session.run(["relation_vectors"], inputs)[0][0]


print(relation_vector("Paris", "France"))
```

How alike two relations are is the cosine of their vectors. `relbert_config` in `config.json` holds prompt and pooling;
a learned prompt has its tokens there, in `template_tokens`. int8 needs ONNX Runtime, for one of its own operators.
""")


def export_onnx(model: OnnxRelBERT, folder: str | Path) -> None:
    """Write the graph, the tokenizer, the configuration and a README on their use.

    >>> from relvec.model.onnx_backend.model import OnnxRelBERT
    >>> export_onnx(OnnxRelBERT.from_pretrained("relvec-small"), "for-others")
    >>> sorted(file.name for file in Path("for-others").iterdir())
    ['README.md', 'checksums.sha256', 'config.json', 'model.onnx', 'tokenizer.json', 'tokenizer_config.json']
    """
    relbert_config = {**model.stored.config.get("relbert_config", {}), "training": model.training_record}
    config = {**model.stored.config, "relbert_config": relbert_config}
    with atomic_model_folder(folder, readme(model), config, stale=[GRAPH]) as partial:
        shutil.copyfile(model.graph, partial / GRAPH)
        for name in TOKENIZER:
            shutil.copyfile(model.stored.base / name, partial / name)


def readme(model: OnnxRelBERT) -> str:
    prompt = model.template.text
    return _README.substitute(
        name=model.name,
        dtype=model.dtype,
        dim=model.dim,
        padding=model.tokenizer.pad_token_id,
        pooling=model.pooling,
        counted=POOLINGS[model.pooling].help,
        prompt=prompt,
        text=repr(prompt.replace("<mask>", model.tokenizer.mask_token)),
    )
