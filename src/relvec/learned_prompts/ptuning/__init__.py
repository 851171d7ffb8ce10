"""P-tuning: embeddings of new tokens learned with the language model frozen (section 3.1)."""
