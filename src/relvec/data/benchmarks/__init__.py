"""Benchmarks: analogy questions, relation classification, relation mapping."""
