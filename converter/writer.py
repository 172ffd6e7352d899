"""Writes files under temporary names, with slabs in parallel, and renames them when all are complete."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from ds4py.errors import RequestError

from . import journal
from .journal import Journal
from .plan import Slab
from .shards import File

Progress = Callable[[int, int], None]
"""Receives the number of elements that are done, and of all elements."""

IN_FLIGHT = 2
"""Slabs for each thread that wait or are in progress. It bounds memory."""


@dataclass
class OpenOutput:
    """A file that is being written."""

    file: File
    fd: int
    journal: Journal
    done: set[int]

    def slabs(self) -> Iterator[tuple[int, Slab]]:
        """Yields the slabs that are left to write, with the numbers of their tensors."""
        for number, tensor in enumerate(self.file.tensors):
            if number not in self.done:
                for slab in tensor.slabs():
                    yield number, slab

    def write(self, number: int, slab: Slab) -> None:
        """Converts one slab and writes it to its place."""
        data = self.file.tensors[number].bytes_of(slab).data
        place = self.file.offsets[number] + slab.offset
        while len(data):
            count = os.pwrite(self.fd, data, place)
            data, place = data[count:], place + count


def write(
    files: Sequence[File], source: Sequence[str], threads: int, progress: Progress, note: Callable[[str], None]
) -> None:
    """Writes all files, or none.

    After KeyboardInterrupt the files stay as they are, and the next run for the same files continues them. `source`
    identifies what they are made from. After any other failure they are removed. Raises FormatError for values that
    cannot be converted, OSError for a full disk, and RequestError if another run writes the same files.
    """
    require_space(files)
    held: dict[int, File] = {}
    outputs: list[OpenOutput] = []
    try:
        for file in files:
            held[open_locked(file)] = file
        outputs.extend(open_output(file, fd, file.fingerprint(source), note) for fd, file in held.items())
        run(outputs, threads, progress)
        for fd in held:
            os.fsync(fd)
        for file in files:
            os.replace(partial_path(file), file.path)
            journal_path(file).unlink()
    except KeyboardInterrupt:
        for output in outputs:
            output.journal.flush()
        raise
    except BaseException:
        for file in held.values():
            remove(file)
        raise
    finally:
        for fd in held:
            os.close(fd)


def open_locked(file: File) -> int:
    """Opens a file under its temporary name and locks it. Raises RequestError if another process has it."""
    path = partial_path(file)
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(fd), os.stat(path)):  # false if a run that has just finished renamed the file
            return fd
    except OSError:
        pass
    os.close(fd)
    raise RequestError(f"{path} is being written by another run; wait for it, or write to another file")


def open_output(file: File, fd: int, fingerprint: str, note: Callable[[str], None]) -> OpenOutput:
    """Writes the header, and continues an earlier run of the same file if there is one."""
    done = finished_tensors(file, fingerprint)
    if done:
        note(f"going on with {file.path.name}: {len(done)} of {len(file.tensors)} tensors are there")
    else:
        os.ftruncate(fd, 0)
    os.ftruncate(fd, file.size)
    os.pwrite(fd, file.header, 0)
    record = Journal(journal_path(file), fingerprint, fd)
    for number in done:
        record.done(number, 0)
    record.flush()
    return OpenOutput(file, fd, record, done)


def run(outputs: Sequence[OpenOutput], threads: int, progress: Progress) -> None:
    """Writes all slabs. Few of them are in progress at any time, so memory stays small for any size."""
    left = {
        (id(output), number): tensor.slab_count
        for output in outputs
        for number, tensor in enumerate(output.file.tensors)
    }
    total = sum(tensor.elements for output in outputs for tensor in output.file.tensors)
    done = sum(output.file.tensors[number].elements for output in outputs for number in output.done)
    todo = ((output, number, slab) for output in outputs for number, slab in output.slabs())
    pending: dict[Future[None], tuple[OpenOutput, int, Slab]] = {}
    ready: SimpleQueue[Future[None]] = SimpleQueue()  # `wait` would be slow beside slabs of milliseconds
    notes: list[Future[None]] = []
    # The journal waits for the disk, so a thread of its own writes it.
    with ThreadPoolExecutor(threads) as pool, ThreadPoolExecutor(1) as journal_thread:
        try:
            while True:
                while len(pending) < IN_FLIGHT * threads and (item := next(todo, None)) is not None:
                    output, number, slab = item
                    future = pool.submit(output.write, number, slab)
                    pending[future] = item
                    future.add_done_callback(ready.put)
                if not pending:
                    break
                future = ready.get()
                output, number, slab = pending.pop(future)
                future.result()
                done += slab.count * output.file.tensors[number].columns
                left[id(output), number] -= 1
                if left[id(output), number] == 0:
                    notes.append(journal_thread.submit(output.journal.done, number, output.file.tensors[number].nbytes))
                progress(done, total)
            for note in notes:
                note.result()
        finally:
            for future in pending:
                future.cancel()


def finished_tensors(file: File, fingerprint: str) -> set[int]:
    """Returns the tensors that an earlier run has completed."""
    path = partial_path(file)
    if not path.exists() or path.stat().st_size != file.size:
        return set()
    return journal.read(journal_path(file), fingerprint)


def require_space(files: Sequence[File]) -> None:
    """Raises OSError if a disk has less space than the files still need."""
    needed: dict[Path, int] = {}
    for file in files:
        folder, path = file.path.parent, partial_path(file)
        there = path.stat().st_blocks * 512 if path.exists() else 0  # an earlier run has allocated these bytes
        needed[folder] = needed.get(folder, 0) + max(0, file.size - there)
    for folder, size in needed.items():
        free = shutil.disk_usage(folder).free
        if size > free:
            short = f"the output needs {size / 1e9:.1f} GB more, and {free / 1e9:.1f} GB are free"
            raise OSError(errno.ENOSPC, short, str(folder))


def partial_path(file: File) -> Path:
    """Returns the temporary name of a file."""
    return file.path.with_name(file.path.name + ".partial")


def journal_path(file: File) -> Path:
    """Returns the name of a file's journal."""
    return file.path.with_name(file.path.name + ".partial.journal")


def remove(file: File) -> None:
    """Removes the files of an unfinished run."""
    for path in (partial_path(file), journal_path(file)):
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
