"""Trains the target and the drafter, in one process for each core. Training is resumable and repeatable by seed."""
