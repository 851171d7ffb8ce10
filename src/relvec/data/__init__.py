"""Training data: relations with good and bad examples, read from files, the hub, or this package itself."""
