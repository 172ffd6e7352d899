"""Where weights come from: a checkpoint directory, or a GGUF file."""
