"""The paper's baselines (section 4.3): chance, PMI, word vectors, pair vectors, and predictions that others saved."""
