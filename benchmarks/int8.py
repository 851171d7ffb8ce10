"""Other ways to int8 than the kept one: quantizers of ONNX Runtime and of OpenVINO, on one gate.

    pip install openvino nncf
    python benchmarks/int8.py --model relvec-mpnet --accuracy

Scales of inputs are found when they come (dynamic), or come from 300 bundled pairs (static). All ways encode the same
pairs in turns; the median of the rounds counts. `--accuracy` evaluates each on the validation parts and the own
questions, forward and in both directions.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
import onnxruntime.quantization as ort
from encode import BENCHMARKS, bundled_pairs

from relvec import RelBERT
from relvec.evaluation.task import evaluate
from relvec.model.onnx_backend.graph import HIDDEN, INPUTS
from relvec.model.onnx_backend.model import OnnxRelBERT, _session
from relvec.similarity import normalized

CALIBRATION = 300
OWN = "bundled"


def inputs(model: OnnxRelBERT) -> Iterator[dict[str, Any]]:
    for ids in model.token_ids(bundled_pairs(CALIBRATION)):
        yield dict(zip(INPUTS, (np.array([ids]), np.ones((1, len(ids)), np.int64)), strict=True))


class Calibration(ort.CalibrationDataReader):
    def __init__(self, model: OnnxRelBERT) -> None:
        self._inputs = inputs(model)

    def get_next(self) -> dict[str, Any] | None:
        return next(self._inputs, None)


def onnx_dynamic(model: OnnxRelBERT, folder: Path) -> None:
    path = folder / "dynamic.onnx"
    ort.quantize_dynamic(model.graph, path, per_channel=True, op_types_to_quantize=["Gemm", "MatMul"])
    model._session = _session(str(path))


def onnx_static(model: OnnxRelBERT, folder: Path) -> None:
    path = folder / "static.onnx"
    ort.quantize_static(model.graph, path, Calibration(model), per_channel=True, op_types_to_quantize=["Gemm"])
    model._session = _session(str(path))


def openvino_static(model: OnnxRelBERT, folder: Path) -> None:
    import nncf
    import openvino

    graph = openvino.Core().read_model(str(model.graph))
    kind = nncf.ModelType.TRANSFORMER  # with SmoothQuant
    made = nncf.quantize(graph, nncf.Dataset(list(inputs(model))), model_type=kind, subset_size=CALIBRATION)
    options = {"INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32"}
    idle: SimpleQueue[Any] = SimpleQueue()
    for _ in range(os.cpu_count() or 1):  # one for each thread
        idle.put(openvino.Core().compile_model(made, "CPU", options))

    def outputs(groups: Any) -> list[Any]:
        compiled = idle.get()
        both = ((ids, np.ones_like(ids)) for ids in groups)
        found = [compiled(dict(zip(INPUTS, each, strict=True)))[HIDDEN].copy() for each in both]
        idle.put(compiled)
        return found

    model._outputs = outputs


OTHERS = {
    "ONNX Runtime, dynamic": onnx_dynamic,
    "ONNX Runtime, static": onnx_static,
    "OpenVINO, static": openvino_static,
}


def accuracy(model: RelBERT) -> str:
    cells = []
    for scoring in ("forward", "bidirectional"):
        datasets = [*BENCHMARKS, OWN]
        records = evaluate(model, "analogy", datasets=datasets, part="valid", scoring=scoring)
        found = {record.dataset: record.metrics["accuracy"] for record in records}
        cells += [found.pop(OWN), statistics.fmean(found.values())]
    return " | ".join(f"{cell:.1f}" for cell in cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="relvec-mpnet")
    parser.add_argument("--accuracy", action="store_true")
    parser.add_argument("--pairs", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    pairs = bundled_pairs(options.pairs)
    models: dict[str, RelBERT] = {"torch float32": RelBERT.from_pretrained(options.model, backend="torch")}
    for dtype in ("float32", "int8"):
        models[f"onnx {dtype}"] = RelBERT.from_pretrained(options.model, backend="onnx", dtype=dtype)
    with tempfile.TemporaryDirectory() as folder:
        for way, quantize in OTHERS.items():
            other = OnnxRelBERT.from_pretrained(options.model)
            other.__class__ = type(way, (OnnxRelBERT,), {"fingerprint": f"{other.fingerprint} {way}"})
            quantize(other, Path(folder))
            models[way] = other
        vectors = {way: normalized(model.encode(pairs)) for way, model in models.items()}  # warms up, too
        seconds: dict[str, list[float]] = {way: [] for way in models}
        for _ in range(options.rounds):
            for way, model in models.items():
                start = time.perf_counter()
                model.encode(pairs)
                seconds[way].append(time.perf_counter() - start)
        first = statistics.median(seconds["torch float32"])
        titles = " own, forward | mean | own, bidirectional | mean |" if options.accuracy else ""
        print(f"| way | pairs/s | ratio | smallest cosine | mean |{titles}")
        print(f"| --- |{' ---: |' * (8 if options.accuracy else 4)}")
        for way, model in models.items():
            taken = statistics.median(seconds[way])
            cosines = (vectors[way] * vectors["torch float32"]).sum(axis=1)
            speed = f"{len(pairs) / taken:,.0f} | {first / taken:.2f}x | {cosines.min():.4f} | {cosines.mean():.4f} |"
            print(f"| {way} | {speed}{f' {accuracy(model)} |' if options.accuracy else ''}", flush=True)


if __name__ == "__main__":
    main()
