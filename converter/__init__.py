"""Makes GGUF files of DeepSeek-V4 checkpoints and of other GGUF files: targets, DSpark drafters, or both.

`source` reads what there is, `plan` decides what is to be written, `writer` writes it. The command is
`deepseek4-quantize` (`python -m ds4py.converter` is the same).
"""
