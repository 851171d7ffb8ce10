"""Learned prompts: trigger tokens around a pair, optimised with the triplet loss while the model is frozen."""
