"""Running the application: loading, listening, the log, and stopping without losing an answer."""

import gc
import logging
import signal
import sys
import warnings
from collections.abc import Sequence

import uvicorn

from relvec.errors import RelvecError, UnknownWordsWarning
from relvec.model.relation_model import RelBERT
from relvec.serve.app import Limits, create_app
from relvec.serve.batching import Batching
from relvec.serve.limits import JsonLines
from relvec.serve.metrics import Metrics
from relvec.serve.models import Served, matched_indexes

log = logging.getLogger("relvec.serve")

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def serve(
    models: Sequence[RelBERT],
    indexes: Sequence[str],
    *,
    host: str,
    port: int,
    limits: Limits,
    batching: Batching,
    api_key: str,
    cors_origins: Sequence[str],
    log_words: bool,
) -> None:
    """Answer until SIGTERM or Ctrl-C; requests under way are answered first."""
    _log_to_stderr()
    warnings.simplefilter("ignore", UnknownWordsWarning)  # it would tell a client's words to the log
    if host not in LOOPBACK and not api_key:
        log.warning("listening beyond this machine without a key; set RELVEC_API_KEY, or put a proxy before it")
    metrics = Metrics()
    served = [
        Served(model, index, metrics, batching, timeout_seconds=limits.timeout_seconds)
        for model, index in zip(models, matched_indexes(models, indexes), strict=True)
    ]
    app = create_app(served, metrics, limits, api_key=api_key, cors_origins=cors_origins, log_words=log_words)
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=int(limits.timeout_seconds) + 1,
    )
    gc.collect()
    gc.freeze()  # what was loaded stays, and need not be looked through while requests wait
    server = uvicorn.Server(config)
    # uvicorn sends the signal that ended it once more, when all is done; that shall not be a failure.
    signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        server.run()
    except SystemExit as error:  # uvicorn could not listen, and has said why in the log
        raise RelvecError(f"Port {port} of {host} cannot be used; choose another by --port.") from error


def _log_to_stderr() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("relvec.serve", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO)
