"""Nearest neighbours among many pairs (section 6.3 of the paper): the pair index, completion, exchange of vectors."""
