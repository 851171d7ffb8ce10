"""Saved results as tables and figures, beside the numbers that were published.

records -> systems -> measured (means over seeds) -> tables -> formats, figures -> page
"""
