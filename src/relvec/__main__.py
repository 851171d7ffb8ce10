"""The command `relvec`, also as `python -m relvec`: it heeds Ctrl-C first, and then imports the rest."""

import os
import signal
from types import FrameType


def main() -> None:
    """Run the command. While Python imports, and while it ends, there is nobody to catch a KeyboardInterrupt."""
    is_heeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # a shell's background job ignores it
    if is_heeded:
        signal.signal(signal.SIGINT, _stop)
    from relvec.cli.app import main

    try:
        if is_heeded:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        main()
    finally:
        if is_heeded:
            signal.signal(signal.SIGINT, _stop)


def _stop(number: int, frame: FrameType | None) -> None:
    os.write(2, b"relvec: stopped.\n")
    os._exit(130)


if __name__ == "__main__":
    main()
