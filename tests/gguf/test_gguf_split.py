"""Split files: any shard opens the set, and a set that does not fit together is refused by the shard's name."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import gguf_tools as tools
import pytest
from gguf import GGUFValueType as V

from ds4py import _native
from ds4py.errors import FormatError

pytestmark = pytest.mark.fast

SHARDS = 4


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    tools.edited(tools.TARGET, folder / "model.gguf", split_max_tensors=50)
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "set"))


def shard(folder: Path, number: int, count: int = SHARDS) -> Path:
    return folder / f"model-{number:05}-of-{count:05}.gguf"


def refuse(path: Path, message: str) -> None:
    with pytest.raises(FormatError) as error:
        _native.GgufFile.open(path)
    assert re.search(message, str(error.value)), str(error.value)


@pytest.mark.parametrize("number", [1, 2, 4])
def test_any_shard_opens_the_set(made: Path, number: int) -> None:
    file = _native.GgufFile.open(shard(made, number))
    whole = _native.GgufFile.open(tools.TARGET)
    assert file.paths == [str(shard(made, n)) for n in range(1, SHARDS + 1)]
    assert file.file_bytes == sum(Path(path).stat().st_size for path in file.paths)
    assert [tuple(t)[:4] for t in file.tensors()] == [tuple(t)[:4] for t in whole.tensors()]
    assert {t.shard for t in file.tensors()} == set(range(SHARDS))
    assert file.metadata()["general.name"] == whole.metadata()["general.name"]
    _native.check_weights(file, _native.read_hyperparameters(file))


def test_a_first_shard_without_tensors(tmp_path: Path) -> None:
    tools.edited(tools.TARGET, tmp_path / "model.gguf", split_max_tensors=100, small_first_shard=True)
    file = _native.GgufFile.open(shard(tmp_path, 2, 3))
    assert {t.shard for t in file.tensors()} == {1, 2}
    _native.check_weights(file, _native.read_hyperparameters(file))


def test_one_shard_of_one(tmp_path: Path) -> None:
    path = shutil.copy(tools.TARGET, shard(tmp_path, 1, 1))
    assert _native.GgufFile.open(path).paths == [str(path)]


def test_a_missing_shard_is_named(folder: Path) -> None:
    shard(folder, 3).unlink()
    refuse(shard(folder, 1), r"model-00003-of-00004\.gguf: cannot be opened.*one of the 4 shards")


def test_a_damaged_shard_is_named(folder: Path) -> None:
    data = shard(folder, 3).read_bytes()
    shard(folder, 3).write_bytes(data[:-200])
    refuse(shard(folder, 1), r"model-00003-of-00004\.gguf: tensor '.*cut short")


def test_shards_joined_with_cat(folder: Path, tmp_path: Path) -> None:
    joined = tmp_path / "joined.gguf"
    joined.write_bytes(b"".join(shard(folder, n).read_bytes() for n in range(1, SHARDS + 1)))
    refuse(joined, r"another GGUF file begins at byte \d+.*cat.*llama-gguf-split --merge")


def test_a_renamed_shard(folder: Path) -> None:
    refuse(shard(folder, 2).rename(folder / "other.gguf"), "split.count' is 4.*give it its name back")


def test_a_shard_under_the_name_of_another(folder: Path) -> None:
    shutil.copy(shard(folder, 2), shard(folder, 3))
    refuse(shard(folder, 1), r"00003-of-00004\.gguf: key 'split.no' is 1, wanted 2")


def test_a_count_that_is_not_the_name_s(folder: Path) -> None:
    refuse(shard(folder, 1).rename(shard(folder, 1, 5)), "split.count' is 4, wanted 5")


def test_a_shard_without_split_keys(folder: Path) -> None:
    shutil.copy(tools.TARGET, shard(folder, 1))
    refuse(shard(folder, 2), r"00001-of-00004\.gguf: key 'split.count' is missing, wanted 4")


@pytest.mark.parametrize("kind, value", [(V.STRING, "4"), (V.INT32, -4), (V.FLOAT32, 4.0)])
def test_a_count_that_is_none(tmp_path: Path, kind: V, value: object) -> None:
    path = tools.edited(tools.TARGET, tmp_path / "model.gguf", {"split.count": (kind, value)})
    refuse(path, "key 'split.count' is the .*, wanted a count")


def test_a_wrong_total(folder: Path) -> None:
    data = shard(folder, 1).read_bytes()
    key = tools.string(b"split.tensors.count") + tools.u32(tools.I32)
    assert data.count(key + tools.u32(178)) == 1
    shard(folder, 1).write_bytes(data.replace(key + tools.u32(178), key + tools.u32(179)))
    refuse(shard(folder, 2), "split.tensors.count' is 179, but the 4 shards hold 178")


def test_a_tensor_in_two_shards(folder: Path) -> None:
    names = [t.name for t in _native.GgufFile.open(shard(folder, 1)).tensors() if t.shard == 1]
    same = next(n for n in names if len(n) == len("blk.0.attn_kv.weight") and n.startswith("blk."))
    data = shard(folder, 2).read_bytes()
    other = tools.string(b"blk.0.attn_kv.weight")
    assert other in shard(folder, 1).read_bytes()
    shard(folder, 2).write_bytes(data.replace(tools.string(same.encode()), other))
    refuse(shard(folder, 1), r"00002-of.*'blk.0.attn_kv.weight' stands in this shard and in .*00001-of-00004")
