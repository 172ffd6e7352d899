"""The sampling policy and its generator again, in slow float64 NumPy written from the definitions."""

from __future__ import annotations

from collections import Counter

import numpy as np


def adjusted(logits, history=(), *, repetition=1.0, presence=0.0, frequency=0.0, last_n=-1, bias=None):
    """Returns logits [vocab] after bias and penalties."""
    row = np.array(logits, dtype=np.float64)
    for token, value in (bias or {}).items():
        row[token] += value
    history = list(history)
    if last_n >= 0:
        history = history[len(history) - min(last_n, len(history)) :]
    for token, count in Counter(history).items():
        row[token] = row[token] / repetition if row[token] > 0 else row[token] * repetition
        row[token] -= presence + count * frequency
    return row


def softmax(row):
    weights = np.exp(row - row.max())
    return weights / weights.sum()


def descending(values):
    """Returns ids from the largest value to the smallest, lower ids first among equals."""
    return np.argsort(-values, kind="stable")


def keep_top_k(row, k):
    if k == 0 or k >= len(row):
        return row
    return np.where(row >= np.sort(row)[-k], row, -np.inf)


def keep_top_p(probabilities, p):
    if p >= 1:
        return probabilities
    order = descending(probabilities)
    reached = np.cumsum(probabilities[order]) >= np.float64(np.float32(p))
    last = int(np.argmax(reached)) if reached.any() else len(order) - 1
    kept = np.zeros_like(probabilities)
    kept[order[: last + 1]] = probabilities[order[: last + 1]]
    return kept


def distribution(logits, history=(), *, temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, **adjustments):
    """Returns probabilities [vocab] of the whole policy, in the order of the specification."""
    row = adjusted(logits, history, **adjustments)
    if temperature < 1e-5:
        return np.eye(1, len(row), int(np.argmax(row)))[0]
    probabilities = softmax(keep_top_k(row / temperature, top_k))
    probabilities = keep_top_p(probabilities, top_p)
    probabilities = np.where(probabilities < min_p * probabilities.max(), 0.0, probabilities)
    return probabilities / probabilities.sum()


def philox(counter, key):
    """Philox 4x32-10 on Python integers."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        a, b = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (b >> 32) ^ c1 ^ k0, b & 0xFFFFFFFF, (a >> 32) ^ c3 ^ k1, a & 0xFFFFFFFF
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return [c0, c1, c2, c3]
