"""Distillation: a small student encoder learns to give the vectors of a large teacher."""
