"""Damaged GGUF files: each gives one FormatError that says what is wrong, in under 100 ms, without growing memory."""

from __future__ import annotations

import re
import struct
import time
from collections.abc import Callable
from pathlib import Path

import gguf_tools as tools
import pytest
from gguf_tools import Draft, Tensor, array, string, u32, u64
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ds4py import _native
from ds4py.errors import FormatError

SECONDS = 0.1
GROWTH = 4 << 20


def with_key(kind: int, payload: bytes, name: bytes = b"key") -> Callable[[Draft], None]:
    return lambda draft: draft.keys.append((name, kind, payload))


def with_tensor(**changes: object) -> Callable[[Draft], None]:
    """The second tensor of the small file with other fields."""

    def change(draft: Draft) -> None:
        fields = {"name": b"second", "dims": (32, 4), "kind": tools.T_Q8_0, "nbytes": 136} | changes
        draft.tensors[1] = Tensor(**fields)  # type: ignore[arg-type]

    return change


def with_fields(**changes: object) -> Callable[[Draft], None]:
    return lambda draft: draft.__dict__.update(changes)


def with_alignment(value: int, kind: int = tools.U32) -> Callable[[Draft], None]:
    def change(draft: Draft) -> None:
        draft.keys[1] = (b"general.alignment", kind, struct.pack("<f", value) if kind == tools.F32 else u32(value))

    return change


DAMAGE: dict[str, tuple[Callable[[Draft], None], str]] = {
    "version 0": (with_fields(version=u32(0)), "version 0, wanted 2 or 3"),
    "version 1": (with_fields(version=u32(1)), "version 1, wanted 2 or 3"),
    "version 4": (with_fields(version=u32(4)), "version 4, wanted 2 or 3"),
    "version 2^32-1": (with_fields(version=u32(2**32 - 1)), "version 4294967295"),
    "big-endian": (with_fields(version=struct.pack(">I", 3)), "big-endian"),
    "2^64-1 keys": (with_fields(n_keys=2**64 - 1), "18446744073709551615 keys"),
    "2^63 keys": (with_fields(n_keys=2**63), "9223372036854775808 keys"),
    "2^32 keys": (with_fields(n_keys=2**32), "4294967296 keys"),
    "one key too many": (with_fields(n_keys=8), "tensor 0, name"),
    "one key too few": (with_fields(n_keys=6), "tensor 'a.words'.*9 dimensions"),
    "2^64-1 tensors": (with_fields(n_tensors=2**64 - 1), "18446744073709551615 tensors"),
    "2^32 tensors": (with_fields(n_tensors=2**32), "4294967296 tensors"),
    "one tensor too many": (with_fields(n_tensors=3), "tensor 2"),
    "value type 13": (with_key(13, u64(0)), "value type 13, wanted 0 to 12"),
    "value type 2^32-1": (with_key(2**32 - 1, u64(0)), "value type 4294967295"),
    "boolean 2": (with_key(tools.BOOL, b"\x02"), "a boolean of 2"),
    "integer above 2^63": (with_key(tools.U64, u64(2**63)), "9223372036854775808, wanted at most"),
    "string of 2^64-1": (with_key(tools.STRING, string(b"x", 2**64 - 1)), "string of 18446744073709551615 bytes"),
    "string of 2^63": (with_key(tools.STRING, string(b"x", 2**63)), "string of 9223372036854775808 bytes"),
    "string of 2^32": (with_key(tools.STRING, string(b"x", 2**32)), "string of 4294967296 bytes"),
    "string beyond the end": (with_key(tools.STRING, string(b"x", 10_000)), "key 'key'.*wanted 10000 x 1 bytes"),
    "empty key": (with_key(tools.U8, b"\x01", b""), "the key ''"),
    "key that is not text": (with_key(tools.U8, b"\x01", b"a\nb\xff"), r"the key 'a\\x0ab\\xff'"),
    "key twice": (with_key(tools.BOOL, b"\x01", b"a.bool"), "key 'a.bool'.*stands twice"),
    "array in an array": (with_key(tools.ARRAY, array(tools.ARRAY, 1, array(tools.U8, 0))), "an array of arrays"),
    "array of type 13": (with_key(tools.ARRAY, array(13, 1, u64(0))), "value type 13"),
    "array of 2^64-1 bytes": (with_key(tools.ARRAY, array(tools.U8, 2**64 - 1)), "array of 18446744073709551615"),
    "array of 2^61 longs": (with_key(tools.ARRAY, array(tools.U64, 2**61)), "array of 2305843009213693952"),
    "array of 2^32 strings": (with_key(tools.ARRAY, array(tools.STRING, 2**32)), "array of 4294967296"),
    "array of 2^32+1 ints": (with_key(tools.ARRAY, array(tools.I32, 2**32 + 1)), "array of 4294967297"),
    "array of 4 million longs": (with_key(tools.ARRAY, array(tools.I64, 2**22)), "wanted 4194304 x 8 bytes"),
    "array of 4 million strings": (with_key(tools.ARRAY, array(tools.STRING, 2**22)), "4194304 strings, more than"),
    "array with boolean 7": (with_key(tools.ARRAY, array(tools.BOOL, 1, b"\x07")), "a boolean of 7"),
    "array string of 2^64-1": (
        with_key(tools.ARRAY, array(tools.STRING, 1, string(b"", 2**64 - 1))),
        "string of 18446744073709551615",
    ),
    "alignment 0": (with_alignment(0), "general.alignment' is the integer 0"),
    "alignment 1": (with_alignment(1), "general.alignment' is the integer 1"),
    "alignment 48": (with_alignment(48), "general.alignment' is the integer 48, wanted a power of two"),
    "alignment 2^31": (with_alignment(2**31), "general.alignment' is the integer 2147483648"),
    "alignment 32.0": (with_alignment(32, tools.F32), "general.alignment' is the float"),
    "no dimensions": (with_tensor(dims=()), "'second'.*0 dimensions, wanted 1 to 4"),
    "5 dimensions": (with_tensor(dims=(32, 1, 1, 1, 1)), "'second'.*5 dimensions"),
    "2^32-1 dimensions": (with_tensor(n_dims=2**32 - 1), "'second'.*4294967295 dimensions"),
    "a dimension of 0": (with_tensor(dims=(32, 0)), "'second'.*dimension 1 is 0"),
    "a dimension of 2^64-1": (with_tensor(dims=(2**64 - 1,)), "'second'.*dimension 0 is 18446744073709551615"),
    "a dimension of 2^63": (with_tensor(dims=(32, 2**63)), "'second'.*beyond 2"),
    "2^64 elements": (with_tensor(dims=(2**32, 2**32)), "'second'.*beyond 2"),
    "elements that wrap to 32": (with_tensor(dims=(2**32 + 32, 2**32)), "'second'.*beyond 2"),
    "bytes beyond 2^63": (with_tensor(dims=(2**31, 2**31), kind=tools.T_F32), "'second'.*more than 2.63 - 1 bytes"),
    "bytes that wrap to 0": (with_tensor(dims=(2**62,), kind=tools.T_F32), "'second'.*more than 2.63 - 1 bytes"),
    "type 4, removed": (with_tensor(kind=tools.T_Q4_2), "'second'.*type id 4.*removed"),
    "type 31, removed": (with_tensor(kind=31), "'second'.*type id 31.*removed"),
    "type 43": (with_tensor(kind=43), "'second'.*type id 43.*newer ggml"),
    "type 2^32-1": (with_tensor(kind=2**32 - 1), "'second'.*type id 4294967295"),
    "row of a block and a half": (with_tensor(dims=(48, 4)), "'second'.*rows of 48 .*Q8_0, wanted a multiple.* 32"),
    "row of half a K block": (with_tensor(dims=(128, 4), kind=tools.T_Q4_K), "'second'.*Q4_K.* 256"),
    "offset not aligned": (with_tensor(offset=65), "'second'.*offset 65, wanted a multiple of 32"),
    "offset of 2^64-32": (with_tensor(offset=2**64 - 32), "'second'.*beyond the end of the file"),
    "offset beyond the end": (with_tensor(offset=96), "'second'.*beyond the end of the file"),
    "overlap": (with_tensor(offset=32), "'second'.*overlaps tensor 'first'"),
    "same place": (with_tensor(offset=0), "overlaps tensor"),
    "bigger than the file": (with_tensor(dims=(32, 2**20)), "'second'.*beyond the end of the file"),
    "name twice": (with_tensor(name=b"first"), "tensor 'first'.*stands twice"),
    "empty name": (with_tensor(name=b""), "the name ''"),
    "name of 64 bytes": (with_tensor(name=b"n" * 64), "string of 64 bytes, wanted at most 63"),
    "name with a zero": (with_tensor(name=b"a\0b"), r"the name 'a\\x00b'"),
}

# Damage to the finished bytes: what stands there, what replaces it, and the message.
PATCHES = {
    "key of 2^64-1": (
        string(b"a.bool"),
        string(b"a.bool", 2**64 - 1),
        "metadata key 2 .*string of 18446744073709551615",
    ),
    "key of 2^32": (string(b"a.bool"), string(b"a.bool", 2**32), "metadata key 2 .*string of 4294967296"),
    "key beyond the end": (string(b"a.bool"), string(b"a.bool", 65535), "metadata key 2 .*wanted 65535 x 1 bytes"),
    "name of 2^64-1": (string(b"second"), string(b"second", 2**64 - 1), "tensor 1, name.*18446744073709551615"),
    "name of 2^32": (string(b"second"), string(b"second", 2**32), "tensor 1, name.*4294967296"),
    "array longer than it is": (array(tools.I32, 3), array(tools.I32, 2**20), "'a.ints'.*wanted 1048576 x 4 bytes"),
    "array shorter than it is": (array(tools.I32, 3), array(tools.I32, 2), "metadata key 6"),
    "strings more than there are": (array(tools.STRING, 2), array(tools.STRING, 40), "'a.words'"),
}


def peak() -> int:
    """Peak of resident memory in bytes since the last `reset_peak`."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))


def reset_peak() -> bool:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:  # not Linux: memory is not checked
        return False
    return True


def refuse(path: Path) -> str:
    """The message of the FormatError, after checking time and memory."""
    measured = reset_peak()
    before = peak() if measured else 0
    start = time.process_time()
    with pytest.raises(FormatError) as error:
        _native.GgufFile.open(path)
    assert time.process_time() - start < SECONDS
    assert not measured or peak() - before < GROWTH
    return str(error.value)


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("change, message", DAMAGE.values(), ids=DAMAGE)
def test_damage_is_named(tmp_path: Path, change: Callable[[Draft], None], message: str) -> None:
    draft = tools.small()
    change(draft)
    path = write(tmp_path / "damaged.gguf", draft.build())
    found = refuse(path)
    assert found.startswith(f"{path}: ")
    assert re.search(message, found), found


@pytest.mark.parametrize("old, new, message", PATCHES.values(), ids=PATCHES)
def test_patched_bytes_are_named(tmp_path: Path, old: bytes, new: bytes, message: str) -> None:
    data = tools.small().build()
    assert data.count(old) == 1
    found = refuse(write(tmp_path / "damaged.gguf", data.replace(old, new)))
    assert re.search(message, found), found


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    data = tools.small().build()
    for size in range(len(data)):
        found = refuse(write(tmp_path / "short.gguf", data[:size]))
        assert re.search("is empty|begins with|cut short|cannot be here|beyond the end", found), f"{size}: {found}"


def test_truncated_model(tmp_path: Path) -> None:
    data = tools.TARGET.read_bytes()
    for size in (len(data) // 2, len(data) - 33):
        assert "cut short" in refuse(write(tmp_path / "short.gguf", data[:size]))


def test_names_of_many_bytes_are_cut_in_messages(tmp_path: Path) -> None:
    draft = tools.small()
    draft.keys.append((b"k" * 60_000, 13, u64(0)))
    assert len(refuse(write(tmp_path / "damaged.gguf", draft.build()))) < 1000


def open_or_refuse(data: bytes, path: Path) -> None:
    """Whatever the bytes are: the file opens, all of it readable, or is a FormatError."""
    try:
        file = _native.GgufFile.open(write(path, data))
    except FormatError:
        return
    file.metadata()
    assert all(tensor.nbytes <= len(data) for tensor in file.tensors())
    try:
        _native.check_weights(file, _native.read_hyperparameters(file))
    except FormatError:
        return
    raise AssertionError("the small file is no model")


FUZZ = settings(
    max_examples=400,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@FUZZ
@given(edits=st.lists(st.tuples(st.integers(0, 2**16), st.integers(0, 255)), max_size=8), cut=st.integers(0, 2**16))
def test_changed_bytes_never_do_worse_than_a_format_error(
    tmp_path: Path, edits: list[tuple[int, int]], cut: int
) -> None:
    data = bytearray(tools.small().build())
    for place, byte in edits:
        data[place % len(data)] = byte
    open_or_refuse(bytes(data[: 1 + cut % (2 * len(data))]), tmp_path / "fuzz.gguf")


@FUZZ
@given(place=st.integers(0, 2**16), value=st.sampled_from([0, 1, 2**31, 2**32 - 1, 2**32, 2**63, 2**64 - 1]))
def test_extreme_words_never_do_worse_than_a_format_error(tmp_path: Path, place: int, value: int) -> None:
    data = bytearray(tools.small().build())
    at = place % (len(data) - 8)
    data[at : at + 8] = u64(value)
    open_or_refuse(bytes(data), tmp_path / "fuzz.gguf")
