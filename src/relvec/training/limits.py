"""The least, and of a seed the most, that the settings of a run may be."""

import math
from collections.abc import Mapping

from relvec.errors import RelvecError

LARGEST_SEED = 2**32 - 1  # that numpy and scikit-learn take

Limits = Mapping[str, tuple[float, str]]
"""By the name of a setting: the least it may be, and what to do about less."""


def check_limits(settings: object, limits: Limits, where: str = "") -> None:
    """Refuse what is below its limit, and what is no finite number; `where` starts the message."""
    for name, (least, why) in limits.items():
        value = getattr(settings, name)
        if not least <= value < math.inf:  # false of nan too
            raise RelvecError(f"{where}{name} is {value}; {why}.")
