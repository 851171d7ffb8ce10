"""Saved results as tables and figures, beside the numbers that were published."""
