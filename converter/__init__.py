"""Makes GGUF files of DeepSeek-V4 from checkpoints and from other GGUF files: targets, DSpark drafters, or both.

`source` reads tensors, `plan` decides what is to be written, and `writer` writes it. The command is
`deepseek4-quantize`, or `python -m ds4py.converter`.
"""
