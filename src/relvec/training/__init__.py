"""Fine-tuning: rated pairs become batches, batches become losses, losses change the language model."""
