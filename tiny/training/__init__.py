"""Training of the target and of the drafter: one process a core, resumable, the same numbers for the same seed."""
