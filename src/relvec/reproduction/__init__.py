"""The whole paper from one command: a plan in TOML, and a small scheduler over relvec's own commands.

plan -> checks -> steps, one process each -> journal, records -> report, verdicts
"""
