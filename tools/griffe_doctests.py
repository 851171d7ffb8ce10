"""Examples and formulas of docstrings as code blocks: in the sources they are plain doctests and indented lines."""

import re
from typing import Any

from griffe import Extension, Object

_EXAMPLE = re.compile(r"^(>>> .*?)(?=\n\s*\n|\Z)", re.DOTALL | re.MULTILINE)


class Doctests(Extension):
    """Fences each stretch of doctest lines."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = _EXAMPLE.sub(r"```pycon\n\1\n```", obj.docstring.value)
