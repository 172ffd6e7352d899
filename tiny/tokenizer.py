"""The tokenizer of the tiny pair: byte-level BPE behind DeepSeek's pre-tokenizer, with the special tokens first."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from .config import BOS, EOS, PAD

SPECIAL: Final = (
    "<｜begin▁of▁sentence｜>",
    "<｜end▁of▁sentence｜>",
    "<｜▁pad▁｜>",
    "<｜User｜>",
    "<｜Assistant｜>",
    "<think>",
    "</think>",
    "<｜noise｜>",
)
"""The special tokens by id, from 0 on."""

SPLITS: Final = (
    r"\p{N}{1,3}",
    "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"""
    r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
    r"| ?[\p{P}\p{S}]+[\r\n]*"
    r"|\s*[\r\n]+"
    r"|\s+(?!\S)"
    r"|\s+",
)
"""The splitting rules that the converter recognises as DeepSeek-V4's, and llama.cpp as `joyai-llm` and
`deepseek-v3`."""

CHAT_TEMPLATE: Final = (
    "{{ bos_token }}{% for message in messages %}"
    "{% if message['role'] == 'user' %}{{ '<｜User｜>' + message['content'] }}"
    "{% elif message['role'] == 'assistant' %}{{ '<｜Assistant｜></think>' + message['content'] + eos_token }}"
    "{% else %}{{ message['content'] }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<｜Assistant｜></think>' }}{% endif %}"
)
"""DeepSeek's chat layout, without thinking and tools."""


def train(texts: Iterable[str], vocabulary: int) -> Tokenizer:
    """Trains a tokenizer of `vocabulary` tokens on texts."""
    tokenizer = Tokenizer(models.BPE())
    splits: list[pre_tokenizers.PreTokenizer] = [pre_tokenizers.Split(Regex(rule), "isolated") for rule in SPLITS]
    to_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*splits, to_bytes])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=list(SPECIAL),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def save(tokenizer: Tokenizer, folder: Path) -> None:
    """Writes `tokenizer.json` and `tokenizer_config.json`."""
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": SPECIAL[BOS],
        "eos_token": SPECIAL[EOS],
        "pad_token": SPECIAL[PAD],
        "add_bos_token": True,
        "add_eos_token": False,
        "chat_template": CHAT_TEMPLATE,
    }
    text = json.dumps(settings, indent=2, ensure_ascii=False) + "\n"
    (folder / "tokenizer_config.json").write_text(text, encoding="utf-8")


def load(folder: Path) -> Tokenizer:
    """Loads the tokenizer of a folder. It takes what looks like a special token in a text as plain text."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.encode_special_tokens = True
    return tokenizer
