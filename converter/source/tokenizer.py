"""Builds the `tokenizer.*` keys from the tokenizer files of a checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gguf import GGUFValueType as Kind

from ds4py.errors import FormatError
from ds4py.json_types import Json
from ds4py.tokenizer.encoder import SPLITS
from ds4py.tokenizer.vocabulary import TokenType

from ..values import Metadata, array, flag, text, u32
from .config import ModelConfig
from .json_keys import load

PRE = "joyai-llm"
"""llama.cpp's name for the pre-tokenizer of DeepSeek-V4."""

KEYS = {"bos": "bos", "eos": "eos", "pad": "padding"}


def tokenizer(folder: Path, config: ModelConfig, template: Path | None = None) -> Metadata:
    """Returns the `tokenizer.*` keys. `template` is a Jinja file to use instead of the checkpoint's chat template.

    Without `tokenizer.json` the keys describe a file that takes token ids only. Raises FormatError for a tokenizer that
    is not DeepSeek's or does not fit the model.
    """
    path = folder / "tokenizer.json"
    if not path.exists():
        return {"tokenizer.ggml.model": text("none"), **special_ids(config, {})}
    try:
        return read(folder, path, config, template)
    except (AttributeError, KeyError, TypeError) as error:  # a value of a wrong type
        raise FormatError(f"{path} or tokenizer_config.json is not built as it should be ({error})") from None


def read(folder: Path, path: Path, config: ModelConfig, template: Path | None) -> Metadata:
    """Returns the keys of a folder with `tokenizer.json`."""
    settings = load(folder / "tokenizer_config.json") if (folder / "tokenizer_config.json").exists() else {}
    found = load(path)
    check_splits(path, found.get("pre_tokenizer"))
    tokens, types = vocabulary(path, found, config.vocab)
    keys = {
        "tokenizer.ggml.model": text("gpt2"),
        "tokenizer.ggml.pre": text(PRE),
        "tokenizer.ggml.tokens": array(tokens, Kind.STRING),
        "tokenizer.ggml.token_type": array(types, Kind.INT32),
        "tokenizer.ggml.merges": array(merges(path, found["model"]), Kind.STRING),
        **special_ids(config, {token: place for place, token in enumerate(tokens)}, settings),
        "tokenizer.ggml.add_bos_token": flag(settings.get("add_bos_token") is True),
    }
    chat = chat_template(folder, settings, template)
    return keys if chat is None else {**keys, "tokenizer.chat_template": text(chat)}


def check_splits(path: Path, found: Any) -> None:
    """Raises FormatError unless the pre-tokenizer has the rules that `PRE` stands for."""
    steps = found.get("pretokenizers", []) if isinstance(found, dict) else []
    rules = [str(step.get("pattern", {}).get("Regex")) for step in steps if step.get("type") == "Split"]
    # The published file has the characters of line ends, and the rules here have their escapes.
    if tuple(rule.replace("\r", r"\r").replace("\n", r"\n") for rule in rules) != SPLITS:
        raise FormatError(f"{path}: its pre-tokenizer is not DeepSeek-V4's, wanted the splits known as '{PRE}'")


def vocabulary(path: Path, found: Json, size: int) -> tuple[list[str], list[int]]:
    """Returns the tokens by id and their types. Ids without a token are filled up to the rows of the embedding."""
    tokens, types = [f"[PAD{place}]" for place in range(size)], [int(TokenType.UNUSED)] * size
    model, added = found["model"]["vocab"], found.get("added_tokens", [])
    entries = [(place, token, TokenType.NORMAL) for token, place in model.items()]
    entries += [(token["id"], token["content"], added_type(token)) for token in added]
    for place, token, kind in entries:
        if type(place) is not int or not 0 <= place < size:
            raise FormatError(f"{path}: token {token!r} has id {place}, but config.json has a vocab_size of {size}")
        tokens[place], types[place] = token, int(kind)
    return tokens, types


def added_type(token: Json) -> TokenType:
    """Returns the type of an added token.

    Tokens that structure a text are control tokens. The flag misses role markers, so the brackets of a token count too.
    """
    content = token["content"]
    markers = (("<｜", "｜>"), ("<|", "|>"))
    looks_special = any(content.startswith(left) and content.endswith(right) for left, right in markers)
    return TokenType.CONTROL if token.get("special") or looks_special else TokenType.USER_DEFINED


def merges(path: Path, model: Json) -> list[str]:
    """Returns the merges as "left right", from either way of writing them."""
    found = model.get("merges")
    if not isinstance(found, list) or not found:
        raise FormatError(f"{path}: has no merges, wanted byte-pair encoding")
    return [each if isinstance(each, str) else " ".join(each) for each in found]


def special_ids(config: ModelConfig, places: dict[str, int], settings: Json | None = None) -> Metadata:
    """Returns the ids of begin, end and padding. The texts in the tokenizer's settings come before config.json."""
    keys: Metadata = {}
    for name, key in KEYS.items():
        token = (settings or {}).get(f"{name}_token")
        content = token.get("content") if isinstance(token, dict) else token
        place = places.get(content, config.token_ids.get(name)) if content else config.token_ids.get(name)
        if place is not None and 0 <= place < config.vocab:
            keys[f"tokenizer.ggml.{key}_token_id"] = u32(place)
    return keys


def chat_template(folder: Path, settings: Json, given: Path | None) -> str | None:
    """Returns the template that was given, or the checkpoint's own, or None.

    A checkpoint has it as a Jinja file, or as text in the tokenizer's settings.
    """
    path = given or folder / "chat_template.jinja"
    if path.exists() or given is not None:
        return path.read_text(encoding="utf-8")
    found = settings.get("chat_template")
    if isinstance(found, list):  # several templates by name
        found = next((each.get("template") for each in found if each.get("name") == "default"), None)
    return found if isinstance(found, str) else None
