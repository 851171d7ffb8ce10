"""Benchmarks and baselines: analogy questions, relation classification, relation mapping, and how results are kept."""
