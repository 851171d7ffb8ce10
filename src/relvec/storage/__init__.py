"""What outlives a process: the cache of what was computed, and the journal of what was done."""
