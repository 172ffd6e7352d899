"""The training recipe of the tiny DeepSeek-V4 + DSpark pair: corpus, models, training, evaluation, export."""
