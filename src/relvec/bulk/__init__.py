"""Bulk encoding: many files of pairs become shards of vectors, by local processes or on a Ray cluster."""

from relvec.bulk.job import Summary, embed_files

__all__ = ["Summary", "embed_files"]
