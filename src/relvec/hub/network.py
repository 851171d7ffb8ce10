"""Whether the network may be used, and whether the hub answers: asked once, with a short patience."""

import os
import threading
from functools import cache

HUB_PATIENCE_SECONDS = 3.0


def offline() -> bool:
    """Whether the user forbade the network (`RELVEC_OFFLINE=1`, or the hub's own `HF_HUB_OFFLINE`)."""
    settings = (os.environ.get(name, "") for name in ("RELVEC_OFFLINE", "HF_HUB_OFFLINE"))
    return any(setting.lower() in ("1", "true", "yes", "on") for setting in settings)


def is_refusal(error: Exception) -> bool:
    """Whether the hub said that it has no such thing, or none for this user; else it is busy, or broke off."""
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    if isinstance(error, HfHubHTTPError):
        return getattr(error.response, "status_code", None) in (401, 403, 404)
    return isinstance(error, HFValidationError)


@cache
def hub_answers() -> bool:
    """Whether the hub responds within a few seconds; asked at most once a process, never retried."""
    if offline():
        return False
    import urllib.error
    import urllib.request

    from huggingface_hub import constants

    answered, done = threading.Event(), threading.Event()

    def ask() -> None:
        request = urllib.request.Request(constants.ENDPOINT, method="HEAD")
        try:
            with urllib.request.urlopen(request, timeout=HUB_PATIENCE_SECONDS):
                answered.set()
        except urllib.error.HTTPError:
            answered.set()
        except (OSError, ValueError):
            pass
        finally:
            done.set()

    # A thread, because looking up a host name has no time-out of its own.
    threading.Thread(target=ask, daemon=True).start()
    done.wait(HUB_PATIENCE_SECONDS)
    return answered.is_set()
