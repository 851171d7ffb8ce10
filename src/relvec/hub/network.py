"""The hub: whether it may be asked, whether it answers, and the files that it sends."""

import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from relvec.errors import RelvecError

HUB_PATIENCE_SECONDS = 3.0


def offline() -> bool:
    """Whether the user forbade the network (`RELVEC_OFFLINE=1`, or the hub's own `HF_HUB_OFFLINE`)."""
    settings = (os.environ.get(name, "") for name in ("RELVEC_OFFLINE", "HF_HUB_OFFLINE"))
    return any(setting.lower() in ("1", "true", "yes", "on") for setting in settings)


class HubError(Exception):
    """The hub does not have what was asked for, or cannot be asked; the message is the reason."""


def hub_snapshot(
    repository: str,
    patterns: Sequence[str],
    *,
    revision: str | None = None,
    kind: str = "model",
    folder: Path | None = None,
) -> Path:
    """The files of a hub repository that match the patterns: in `folder`, else in the hub's own cache.

    `revision` is a commit or a branch, by default the newest; `kind` is model or dataset.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(
            snapshot_download(
                repository,
                repo_type=kind,
                revision=revision,
                allow_patterns=list(patterns),
                ignore_patterns=["*/*"] if kind == "model" else None,  # other formats lie in folders of their own
                local_dir=folder,
                local_files_only=not hub_answers(),
                etag_timeout=HUB_PATIENCE_SECONDS,
            )
        )
    except Exception as error:  # the transport's own errors are not the hub library's
        if not hub_answers():
            reason = "the network is switched off" if offline() else "the hub does not answer"
            raise HubError(f"it may be on the hub, but {reason}") from error
        answer = (error.__cause__ if isinstance(error, LocalEntryNotFoundError) else None) or error
        status = getattr(getattr(answer, "response", None), "status_code", None)
        if status in (401, 403, 404) or isinstance(answer, HFValidationError):
            raise HubError(f"the hub has no {kind} {repository}, or none for you") from error
        raise RelvecError(f"The hub broke off while sending {repository}; try again, or give a local copy.") from error


@cache
def hub_answers() -> bool:
    """Whether the hub responds within a few seconds; asked at most once a process, never retried."""
    if offline():
        return False
    import urllib.error
    import urllib.request

    from huggingface_hub import constants

    answered = threading.Event()

    def ask() -> None:
        request = urllib.request.Request(constants.ENDPOINT, method="HEAD")
        with suppress(OSError, ValueError):
            with suppress(urllib.error.HTTPError):  # an answer, too
                urllib.request.urlopen(request, timeout=HUB_PATIENCE_SECONDS).close()
            answered.set()

    # A thread, because looking up a host name has no time-out of its own.
    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(HUB_PATIENCE_SECONDS)
    return answered.is_set()
