"""A compact DeepSeek-V4 and DSpark in PyTorch, float32, for training on CPUs.

Parameters have DeepSeek's names, so that a `state_dict` is a checkpoint but for its experts (see `tiny.export`).
"""
