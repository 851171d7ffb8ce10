"""An exported folder holds all that another program needs."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relvec.model.onnx_backend.export import export_onnx
from relvec.model.onnx_backend.model import OnnxRelBERT


@pytest.mark.parametrize(
    ("dtype", "template"), [("float32", None), ("int8", None), ("float32", '"[h]" isn\'t <mask> of [t]\\')]
)
def test_the_example_of_the_readme_gives_the_models_vectors(
    quick_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: str, template: str | None
) -> None:
    model = OnnxRelBERT.from_pretrained(quick_folder, dtype=dtype, template=template)
    export_onnx(model, tmp_path / "exported")
    monkeypatch.chdir(tmp_path / "exported")
    found = re.search(r"```python\n(.*?)```", Path("README.md").read_text(), re.DOTALL)
    assert found is not None
    names: dict[str, Any] = {}
    exec(found.group(1), names)
    for pair in (("Paris", "France"), ("ice cream", "tea")):
        np.testing.assert_allclose(names["relation_vector"](*pair), model.encode(pair), atol=1e-5)
