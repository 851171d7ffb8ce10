"""Saved results as tables and figures, beside the numbers that were published.

records -> measured systems -> tables (analogy, classification, mapping and loss) -> formats, figures -> page
"""
