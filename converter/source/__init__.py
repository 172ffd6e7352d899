"""Reads weights from a checkpoint folder or from a GGUF file."""
