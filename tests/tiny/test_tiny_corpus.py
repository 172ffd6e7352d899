"""The tiny pair's corpus: generators, held-out parts, cutting, tokenizer and token streams. Nothing is fetched."""

from __future__ import annotations

import csv
import io
import json
import random
import re
import struct
import tarfile
import zipfile
import zlib
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import Template
from tokenizers import Tokenizer

from ds4py.converter.source.tokenizer import check_splits
from ds4py.tokenizer import encoder
from tiny import tokenizer as tokenizers
from tiny.config import BOS, DOMAINS, EOS, NOISE, PAD
from tiny.corpus import (
    Settings,
    SourceError,
    build,
    documents,
    encoding,
    files,
    json_documents,
    rdata,
    sources,
    split,
    table_documents,
)
from tiny.corpus.documents import generated, several, store, stored
from tiny.corpus.split import by_end, by_file, pieces
from tiny.corpus.values import SCALARS
from tiny.corpus.words import FIRST, LAST, NOUNS, PLACES, QUALIFIERS, pool

GENERATORS = (json_documents, table_documents)
SMALL = Settings(json=20_000, tables=20_000, heldout=8_000, vocabulary=400, sample=20_000)
TEXT = "def area(radius):\n    return 3.14159 * radius ** 2  # größer, 日本語, 🙂\r\n\n\n<think> | a | b |\n"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A work folder with a few documents a domain, a tokenizer and the streams."""
    work = tmp_path_factory.mktemp("work")
    for domain in DOMAINS:
        kind = "json" if domain == "json" else "tables"
        store(work, domain, generated(kind, SMALL))
    encoding.train_tokenizer(work, SMALL)
    encoding.encode(work, SMALL, lambda stage, done: None)
    return work


@pytest.fixture(scope="module")
def trained(small: Path) -> Tokenizer:
    return tokenizers.load(small / "data")


def sample(module: ModuleType, seed: int = 3, heldout: bool = False, characters: int = 120_000) -> list[str]:
    """Generated documents."""
    return list(several(module.document, random.Random(seed), pool(heldout), characters))


def parsed(text: str) -> list[Any]:
    """The values of a JSON document, or of each of its lines."""
    try:
        return [json.loads(text)]
    except json.JSONDecodeError:
        return [json.loads(line) for line in text.splitlines()]


def shape(value: Any) -> Any:
    """The keys of a record, and of the records in it."""
    return {key: shape(each) for key, each in value.items()} if isinstance(value, dict) else None


def test_json_is_valid_and_records_share_their_schema() -> None:
    arrays = 0
    for text in sample(json_documents):
        values = parsed(text)
        rows = values[0] if isinstance(values[0], list) else values
        arrays += len(rows) > 1
        assert all(shape(row) == shape(rows[0]) for row in rows)
    assert arrays > 15


def test_keys_are_too_many_to_be_learnt_by_heart() -> None:
    keys = [key for text in sample(json_documents) for key in set(re.findall(r'"(\w+)":', text))]
    assert len(set(keys)) > 0.5 * len(keys)


def test_tables_have_equal_column_counts() -> None:
    tables = 0
    for text in sample(table_documents):
        if "|" not in text:
            delimiter = next(mark for mark in "\t;," if mark in text.splitlines()[0] or mark == ",")
            rows = list(csv.reader(io.StringIO(text), delimiter=delimiter))
            assert len({len(row) for row in rows}) == 1
        for block in re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE):
            lines = block.splitlines()
            assert len({line.count("|") for line in lines}) == 1
            assert re.fullmatch(r"\|( :?-+:? \|)+", lines[1])
            tables += 1
    assert tables > 20


def test_padded_tables_are_straight() -> None:
    heads, body, marks = ["id", "name"], [["1", "Ada"], ["20", "Grace H"]], ["right", "centre"]
    text = table_documents.markdown(heads, body, marks, padded=True)
    assert text == (
        "|  id |   name  |\n"
        "| --: | :-----: |\n"
        "|   1 |   Ada   |\n"
        "|  20 | Grace H |\n"
    )  # fmt: skip


@pytest.mark.parametrize("module", GENERATORS)
def test_generators_depend_on_the_seed_alone(module: ModuleType) -> None:
    assert sample(module) == sample(module)
    assert sample(module) != sample(module, seed=4)


@pytest.mark.parametrize("words", [NOUNS, QUALIFIERS, FIRST, LAST, PLACES])
def test_every_word_is_in_one_pool(words: tuple[str, ...]) -> None:
    inside = [{each for part in vars(pool(heldout)).values() for each in map(str.lower, part)} for heldout in (0, 1)]
    assert not inside[0] & inside[1]
    assert {word.lower() for word in words} <= inside[0] | inside[1]
    assert min(sum(word.lower() in part for word in words) for part in inside) >= 10


def test_held_out_documents_use_held_out_words() -> None:
    known = {word.lower() for part in vars(pool(False)).values() for word in part}
    grammar = set(re.findall("[a-z]+", " ".join(endings for _, endings, _ in SCALARS)))
    used = {word for text in sample(json_documents, heldout=True) for key in keys(text) for word in key}
    assert not (used & known) - grammar - {"meta", "page", "count", "config", "settings", "options", "time", "message"}


def keys(text: str) -> list[list[str]]:
    """The words of every key."""
    return [re.findall("[a-z]+", re.sub("([A-Z])", r" \1", key).lower()) for key in re.findall(r'"(\w+)":', text)]


@given(st.text(alphabet="ab\n", max_size=200), st.integers(1, 40))
def test_cutting_loses_nothing(text: str, longest: int) -> None:
    cut = pieces(text, longest)
    assert "".join(cut) == text
    assert all(0 < len(piece) <= longest for piece in cut)


def test_cuts_are_at_line_ends() -> None:
    assert pieces("one\ntwo\nthree\n", 9) == ["one\ntwo\n", "three\n"]


def test_files_are_held_out_by_content_alone() -> None:
    texts = [f"{number} is the number of this document, which has one line\n" for number in range(400)]
    parts = by_file(texts, 0.1)
    backwards = by_file([*reversed(texts), texts[0]], 0.1)
    assert (parts.train, parts.heldout) == (backwards.train, backwards.heldout)
    assert 20 < len(parts.heldout) < 65
    assert sorted(parts.train + parts.heldout) == sorted(texts)


def test_copies_of_training_files_are_not_held_out() -> None:
    body = "this line stands in every one of these documents\n" * 5
    parts = by_file([f"{body}{number}\n" for number in range(400)], 0.1)
    assert len(parts.train) > 300
    assert parts.heldout == []


def test_the_end_of_a_book_is_held_out() -> None:
    book = "".join(f"line {number}\n" for number in range(100))
    parts = by_end([book], 0.05)
    assert parts.train[0] + parts.heldout[0] == book
    assert 3 <= parts.heldout[0].count("\n") <= 7
    assert parts.train[0].endswith("\n")


def test_shares_keep_to_their_limit() -> None:
    texts = [str(number) * 10 for number in range(10, 60)]
    assert split.share(texts, 200) == split.share([*texts[::-1], *texts], 200)
    assert sum(map(len, split.share(texts, 205))) == 200


def test_novels_are_read_from_r_data() -> None:
    lines = [f"Chapter {number}, in which little happens." for number in range(1200)]
    vector = struct.pack(">ii", 16, len(lines))
    for line in lines:
        vector += struct.pack(">ii", 0x00040009, len(line)) + line.encode()
    record = b"X\n\0\0\0\2" + vector
    database = b"junk" + struct.pack(">I", len(record)) + zlib.compress(record)
    assert rdata.texts(database) == ["\n".join(lines)]
    assert rdata.texts(database[:400]) == []


@pytest.mark.parametrize("name", ["thing-1.0.tar.gz", "thing-1.0-py3-none-any.whl"])
def test_packages_are_read_in_order(tmp_path: Path, name: str) -> None:
    contents = {"thing/b.py": b"b = 2\n", "thing/a.py": b"a = 1\n"}
    if name.endswith(".whl"):
        with zipfile.ZipFile(tmp_path / name, "w") as wheel:
            for member, content in contents.items():
                wheel.writestr(member, content)
    else:
        with tarfile.open(tmp_path / name, "w:gz") as archive:
            for member, content in contents.items():
                header = tarfile.TarInfo(member)
                header.size = len(content)
                archive.addfile(header, io.BytesIO(content))
    assert list(sources.members(tmp_path / name)) == sorted(contents.items())
    assert sources.version(tmp_path / name) == "1.0"


@pytest.mark.parametrize("tool", ["no-such-tool", "false"])
def test_a_failed_fetch_says_what_to_do(tmp_path: Path, tool: str) -> None:
    with pytest.raises(SourceError, match=rf"thing: .*{tool}.*put the package of thing into .*pip"):
        sources.run([tool], tmp_path / "pip", sources.Source("thing", "MIT", "1.0"))


def test_missing_sources_are_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no package of r-cran-janeaustenr"):
        files.prose(tmp_path)


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("def twice(value):\n    return value + value\n" * 20, True),
        ("short = True\n", False),
        ("table = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5]\n" * 20, False),
        ("# Generated by a program\n" + "def twice(value):\n    return value + value\n" * 20, False),
        ("x = '" + "a" * 500 + "'\n" + "def twice(value):\n    return value + value\n" * 20, False),
    ],
)
def test_code_is_told_from_data(text: str, good: bool) -> None:
    assert files.is_code(text) == good


def test_pages_are_told_from_changelogs() -> None:
    assert files.is_page("thing-1.0/docs/usage.rst") and files.is_page("thing-1.0/docs/intro.txt")
    assert not files.is_page("thing-1.0/changes.rst") and not files.is_page("thing-1.0/thing/words.txt")


def test_special_tokens_are_the_first_ids(trained: Tokenizer) -> None:
    assert [trained.token_to_id(token) for token in tokenizers.SPECIAL] == list(range(8))
    assert (BOS, EOS, PAD, NOISE) == (0, 1, 2, 7)
    assert trained.get_vocab_size() == 400


def test_the_pre_tokenizer_is_the_one_that_the_converter_recognises(small: Path) -> None:
    path = small / "data" / "tokenizer.json"
    found = json.loads(path.read_text(encoding="utf-8"))["pre_tokenizer"]
    check_splits(path, found)
    pre_tokenizer = Tokenizer.from_file(str(path)).pre_tokenizer
    assert pre_tokenizer.pre_tokenize_str(TEXT) == encoder.pre_tokenizer().pre_tokenize_str(TEXT)


def test_text_comes_back_and_is_never_special(trained: Tokenizer) -> None:
    ids = trained.encode(TEXT, add_special_tokens=False).ids
    assert trained.decode(ids, skip_special_tokens=False) == TEXT
    assert min(ids) >= 8


def test_the_chat_template_writes_deepseeks_layout(small: Path) -> None:
    settings = json.loads((small / "data" / "tokenizer_config.json").read_text(encoding="utf-8"))
    said = [{"role": "system", "content": "S"}, {"role": "user", "content": "U"}]
    tokens = {"bos_token": settings["bos_token"], "eos_token": settings["eos_token"]}
    text = Template(settings["chat_template"]).render(messages=said, add_generation_prompt=True, **tokens)
    assert text == "<｜begin▁of▁sentence｜>S<｜User｜>U<｜Assistant｜></think>"


@pytest.mark.parametrize("domain", DOMAINS)
def test_streams_hold_the_documents(small: Path, trained: Tokenizer, domain: str) -> None:
    for part in ("train", "heldout"):
        ids = np.fromfile(small / "data" / f"{part}_{domain}.bin", dtype="<u2")
        texts = list(stored(small, part, domain))
        assert ids[0] == BOS and ids[-1] == EOS
        assert (ids == BOS).sum() == sum(len(pieces(text)) for text in texts)
        assert (ids == EOS).sum() == len(texts)
        found = [trained.decode(each[each >= 8].tolist()) for each in np.split(ids, np.flatnonzero(ids == BOS)[1:])]
        wanted = [piece for text in texts for piece in pieces(text)]
        assert found == wanted if part == "heldout" else sorted(found) == sorted(wanted) and found != wanted
        sizes = json.loads((small / "data" / "data.json").read_text(encoding="utf-8"))[domain][part]
        assert sizes["tokens"] == len(ids) and sizes["characters"] == sum(map(len, texts))


def test_a_cut_document_ends_once(trained: Tokenizer) -> None:
    streams = list(encoding.piece_tokens(trained, ["line\n" * 3000]))
    assert len(streams) == 2
    assert [int(each[0]) for each in streams] == [BOS, BOS]
    assert [bool((each == EOS).any()) for each in streams] == [False, True]


def test_what_is_done_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    steps = ((sources, "fetch"), (documents, "write"), (encoding, "train_tokenizer"), (encoding, "encode"))
    for module, name in steps:
        monkeypatch.setattr(module, name, lambda *_, name=name: done.append(name))
    build(tmp_path, lambda stage, share: None, SMALL)
    assert done == [name for _, name in steps]
    build(tmp_path, lambda stage, share: None, SMALL)
    assert len(done) == len(steps)
    (tmp_path / "tokenizer.done").unlink()
    build(tmp_path, lambda stage, share: None, SMALL)
    assert done[len(steps) :] == ["train_tokenizer", "encode"]
    done.clear()
    build(tmp_path, lambda stage, share: None, Settings(seed=SMALL.seed + 1))
    assert len(done) == len(steps)


def test_an_interrupted_step_is_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise SourceError("the network is away")

    monkeypatch.setattr(sources, "fetch", fail)
    for _ in range(2):
        with pytest.raises(SourceError, match="away"):
            build(tmp_path, lambda stage, share: None, SMALL)
