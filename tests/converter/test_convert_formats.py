"""FP8, FP4 and MXFP4 as decoded natively, against the formats' definitions in double precision."""

from __future__ import annotations

import numpy as np
import pytest
from checkpoints import E2M1, E4M3

from ds4py import RequestError, _native
from ds4py.converter.source.fp8 import MAX_SCALE, e8m0

pytestmark = pytest.mark.fast

NUMBERS = np.array([code for code in range(256) if code & 0x7F != 0x7F], np.uint8)


def same_bits(found: np.ndarray, wanted: np.ndarray) -> bool:
    """Zeros have signs, too."""
    assert found.dtype == wanted.dtype == np.float32
    assert found.shape == wanted.shape
    return np.array_equal(found.view(np.uint32), wanted.view(np.uint32))


def signed(values: np.ndarray, codes: np.ndarray, sign: int) -> np.ndarray:
    """With the sign that the code has, also of a zero."""
    return np.where(codes & sign, -np.abs(values), np.abs(values)).astype(np.float32)


def test_every_fp8_code_under_every_e8m0_scale() -> None:
    """All 254 numbers of E4M3, subnormals among them, under all scales that are allowed; products may be subnormal."""
    scales = e8m0(np.arange(255, dtype=np.uint8))
    scales = scales[scales <= MAX_SCALE]
    codes = np.tile(NUMBERS, (len(scales), 1))
    found = _native.decode_fp8(codes, np.stack([scales, scales], axis=1))
    assert same_bits(found, signed(np.abs(E4M3)[codes] * scales[:, None].astype(np.float64), codes, 0x80))


def test_fp8_codes_of_nan() -> None:
    found = _native.decode_fp8(np.array([[0x7F, 0xFF, 0x7E]], np.uint8), np.ones((1, 1), np.float32))
    assert np.isnan(found).tolist() == [[True, True, False]]


@pytest.mark.parametrize("columns", [1, 127, 128, 129, 384, 400])
def test_fp8_rows_of_any_length_under_f32_scales(columns: int) -> None:
    rng = np.random.default_rng(columns)
    codes = rng.choice(NUMBERS, (5, columns))
    scales = rng.standard_normal((5, -(-columns // 128)), np.float32)
    spread = np.repeat(scales, 128, axis=1)[:, :columns]
    assert same_bits(_native.decode_fp8(codes, scales), signed(E4M3[codes], codes, 0x80) * spread)


def test_every_fp4_code_under_every_scale() -> None:
    """Every byte, which is every pair of codes, under the scales 2^-127 to 2^125."""
    scales = np.repeat(np.arange(253, dtype=np.uint8), 16)
    packed = np.tile(np.arange(256, dtype=np.uint8), 253)
    codes = np.stack([packed & 15, packed >> 4], axis=1).reshape(-1, 32)
    powers = 2.0 ** (scales.astype(int) - 127)
    wanted = signed(np.abs(E2M1)[codes] * powers[:, None], codes, 8)
    assert same_bits(_native.decode_fp4(packed, scales), wanted.ravel())


def test_mxfp4_blocks() -> None:
    rng = np.random.default_rng(1)
    packed, scales = rng.integers(0, 256, (100, 16), np.uint8), rng.integers(0, 256, 100, np.uint8)
    elements = np.stack([packed & 15, packed >> 4], axis=2).reshape(100, 32)
    wanted = np.concatenate([scales[:, None], elements[:, :16] | elements[:, 16:] << 4], axis=1)
    assert np.array_equal(_native.fp4_to_mxfp4(packed.ravel(), scales), wanted.ravel())


@pytest.mark.parametrize("bad", [np.nan, -np.nan, np.inf, -np.inf])
def test_greatest_magnitude(bad: float) -> None:
    values = np.random.default_rng(1).standard_normal((37, 41), np.float32)
    assert _native.greatest_magnitude(values) == np.abs(values).max()
    values[36, 40] = bad
    assert not np.isfinite(_native.greatest_magnitude(values))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda u8, f32: _native.decode_fp8(u8(2, 129), f32(2, 1)), "scales are 2 x 1, wanted 2 x 2"),
        (lambda u8, f32: _native.decode_fp8(u8(2, 129), f32(1, 2)), "scales are 1 x 2, wanted 2 x 2"),
        (lambda u8, f32: _native.decode_fp8(f32(2, 128), f32(2, 1)), "codes are a 2-dimensional array of float32"),
        (lambda u8, _: _native.decode_fp4(u8(33), u8(2)), "2 scales for 33 bytes"),
        (lambda u8, _: _native.fp4_to_mxfp4(u8(16), u8(2)), "2 scales for 16 bytes"),
        (lambda u8, _: _native.greatest_magnitude(u8(2, 2)), "values are a 2-dimensional array of uint8"),
    ],
)
def test_arrays_that_do_not_fit(call, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        call(lambda *shape: np.zeros(shape, np.uint8), lambda *shape: np.zeros(shape, np.float32))
