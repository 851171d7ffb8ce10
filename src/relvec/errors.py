"""The one error that users see: what was wrong, where, and how to mend it."""


class RelvecError(ValueError):
    """Bad input, a missing model or a broken file; the message is one sentence that ends in the fix."""
