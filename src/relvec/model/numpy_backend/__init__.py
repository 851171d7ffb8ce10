"""Relation vectors by numpy alone: an answer about a few pairs, before torch and transformers could be imported."""


class NotQuickError(Exception):
    """This model is none that the quick encoder knows; torch has to encode with it, or say what is wrong with it."""
