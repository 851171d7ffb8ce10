"""Prompts: a pair of words becomes a sentence, and the sentence becomes tokens."""

from relvec.prompts.template import DEFAULT_TEMPLATE, MANUAL_TEMPLATES, Template
from relvec.prompts.tokenized import TokenizedTemplate

__all__ = ["DEFAULT_TEMPLATE", "MANUAL_TEMPLATES", "Template", "TokenizedTemplate"]
