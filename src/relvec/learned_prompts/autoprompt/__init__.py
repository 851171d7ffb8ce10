"""AutoPrompt: vocabulary tokens found by gradient-guided search (section 3.1)."""
