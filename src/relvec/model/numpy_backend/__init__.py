"""Relation vectors by numpy alone: an answer about a few pairs before torch could be imported."""
