"""Relation models: what turns pairs into vectors, one file or package for each backend."""
