"""Looking into a model, beyond its scores: relations it never saw, and what its vectors look like (section 6)."""
