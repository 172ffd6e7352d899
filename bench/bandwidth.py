"""Measures how fast this machine reads memory."""

import ctypes
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

PART = 256 << 20
"""Bytes that each thread reads, more than any cache holds."""


class Memory:
    """One buffer for each thread, which the thread reads from end to end.

    The C library searches the buffer for a byte that is not there. It looks at every byte once, with the widest loads
    of the processor and without Python's lock.
    """

    def __init__(self, threads: int, part: int = PART) -> None:
        self.threads = threads
        # Pages that were never written all map to one page of zeros, so this writes them.
        self.parts = [np.full(part, 1, np.uint8) for _ in range(threads)]
        self.search = ctypes.CDLL(None).memchr
        self.search.restype = ctypes.c_void_p
        self.search.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
        self.pool = ThreadPoolExecutor(threads)

    def read(self, part: np.ndarray) -> None:
        """Reads one buffer."""
        assert self.search(part.ctypes.data, 0, part.size) is None

    def bandwidth(self) -> float:
        """Returns the bytes per second that all threads read together."""
        begin = time.perf_counter()
        list(self.pool.map(self.read, self.parts))
        return sum(part.size for part in self.parts) / (time.perf_counter() - begin)
