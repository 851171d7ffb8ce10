"""relvec serve: an API for programs and a page for people."""

import os
from typing import Annotated, Any

import typer

from relvec.cli.options import check_device, start_quickly
from relvec.errors import needed_for
from relvec.hub.catalogue import DEFAULT_MODEL


def _option(env: str, help: str, *names: str, **checks: Any) -> Any:
    """An option that an environment variable may give too."""
    return typer.Option(*names, envvar=f"RELVEC_{env}", help=help, **checks)


def serve(
    *,
    host: Annotated[str, _option("HOST", "The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, _option("PORT", "The port to listen at.", min=0, max=65535)] = 8000,
    model: Annotated[
        list[str], _option("MODEL", "A model name, a folder or a hub id; may be repeated.", "--model", "-m")
    ] = [DEFAULT_MODEL],  # noqa: B006
    index: Annotated[
        list[str],
        _option("INDEX", "An index folder, or milvus: and its address, made by one of the models; may be repeated."),
    ] = [],  # noqa: B006
    backend: Annotated[str, _option("BACKEND", "What computes: auto, torch, onnx or numpy.")] = "auto",
    device: Annotated[
        str | None, _option("DEVICE", "cpu, cuda or mps; by default the fastest there is.", callback=check_device)
    ] = None,
    dtype: Annotated[
        str, _option("DTYPE", "The precision: float32; or bfloat16 (torch) and int8 (onnx), faster and less exact.")
    ] = "float32",
    max_pairs: Annotated[int, _option("MAX_PAIRS", "The most pairs of a request.", min=1)] = 256,
    max_bytes: Annotated[int, _option("MAX_BYTES", "The most bytes of a request.", min=1)] = 256 * 1024,
    queue_pairs: Annotated[int, _option("QUEUE_PAIRS", "The most pairs under way at once.", min=1)] = 4096,
    timeout: Annotated[float, _option("TIMEOUT", "Seconds after which a request is given up.", min=0.1)] = 60.0,
    batch_size: Annotated[int, _option("BATCH_SIZE", "The most pairs encoded at once.", min=1)] = 64,
    wait: Annotated[float, _option("WAIT", "Milliseconds in which pairs gather for a batch.", min=0)] = 3.0,
    cors_origin: Annotated[
        list[str], _option("CORS_ORIGIN", "A site whose pages may use this server; may be repeated.")
    ] = [],  # noqa: B006
    log_words: Annotated[bool, _option("LOG_WORDS", "Also log what clients send.", "--log-words")] = False,
) -> None:
    """Serve a web page at / and an HTTP API, documented at /docs. RELVEC_API_KEY holds the key, if any."""
    start_quickly()
    with needed_for("relvec serve"):
        from relvec.serve.app import Limits
        from relvec.serve.batching import Batching
        from relvec.serve.server import serve as run
    from relvec.model.relation_model import RelBERT

    loaded = [
        RelBERT.from_pretrained(name, backend=backend, device=device, dtype=dtype, workload="serve") for name in model
    ]
    run(
        loaded,
        index,
        host=host,
        port=port,
        limits=Limits(max_pairs, max_bytes, queue_pairs, timeout),
        batching=Batching(batch_size, wait / 1000),
        api_key=os.environ.get("RELVEC_API_KEY", ""),
        cors_origins=cors_origin,
        log_words=log_words,
    )
