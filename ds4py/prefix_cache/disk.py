"""Sessions saved to disk: files in a folder that several processes may share."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from ds4py import _native
from ds4py.errors import Error, FormatError, RequestError
from ds4py.prefix_cache.common_prefix import common_prefix
from ds4py.prefix_cache.protocols import CachedSession, Ids, SessionFactory, SessionT

SUFFIX = ".ds4state"
FILE_NAME: Final = re.compile(rf"[0-9a-f]{{24}}-[0-9a-f]{{24}}{re.escape(SUFFIX)}")
"""The names of the files kept here; a session that a user saved into the folder has another name."""
PARTIAL_SUFFIX = ".ds4part"
"""The suffix of a file while it is being written."""
ABANDONED_SECONDS = 3600.0
"""The age, in seconds, at which an unfinished file counts as abandoned and is removed."""

log = logging.getLogger(__name__)


class SavedSession(NamedTuple):
    """A file with a session, and what its header says.

    Attributes:
        tokens: the ids in the state, int32 [n].
        checkpoints: positions to which going back is at once, ascending.
    """

    path: Path
    tokens: Ids
    checkpoints: tuple[int, ...]

    def reusable_length(self, ids: Ids) -> int:
        """The number of leading tokens of `ids` that need no evaluation after this session is loaded."""
        shared = common_prefix(self.tokens, ids)
        if shared == len(self.tokens):
            return shared
        return max((position for position in self.checkpoints if position <= shared), default=0)


class DiskCache:
    """Saved sessions of one engine in a folder; the least recently used files are removed where they take too much.

    A file's name has a digest of what its state depends on: model, drafter, KV type, device and build. So files of
    other engines and builds are never read, and only removed as the least recently used. A file that cannot be read is
    removed, and a session that cannot be written is not kept; neither is an error.

    Args:
        folder: made where it is missing.
        limit: the most bytes that all files in the folder take.
        identity: what the states depend on.

    Raises RequestError for a folder in which no file can be written.
    """

    def __init__(self, folder: str | os.PathLike[str], limit: int, identity: Mapping[str, str | int]) -> None:
        self.folder = prepared_folder(folder)
        self._limit = limit
        self._identity = digest(json.dumps(dict(identity), sort_keys=True).encode())
        self._seen: dict[tuple[str, int, int], SavedSession] = {}

    def find(self, ids: Ids, context: int) -> SavedSession | None:
        """The saved session that fits `context` and spares the most evaluation of `ids`; None where none spares any."""
        fitting = (saved for saved in self._saved() if len(saved.tokens) <= context)
        best = max(fitting, key=lambda saved: saved.reusable_length(ids), default=None)
        return best if best and best.reusable_length(ids) else None

    def load(self, saved: SavedSession, engine: SessionFactory[SessionT], context: int) -> SessionT | None:
        """Opens a saved session and marks its file as used now.

        Returns None where it cannot be loaded; a damaged file is removed.
        """
        try:
            session = engine.load_session(saved.path, context=context)
        except FormatError as error:
            self._remove(saved.path, error)
            return None
        except (Error, OSError) as error:  # no room perhaps, which may be there another time
            log.warning("%s is not loaded: %s", saved.path, error)
            return None
        with suppress(OSError):  # another process may have removed it
            os.utime(saved.path)
        return session

    def save(self, session: CachedSession, checkpoints: Sequence[int]) -> None:
        """Saves a session, then removes files until all take at most the limit.

        The file appears whole or not at all: it is written under a temporary name and renamed.
        """
        name = f"{self._identity}-{digest(session.history().tobytes())}{SUFFIX}"
        temporary = self.folder / f"{uuid.uuid4().hex}{PARTIAL_SUFFIX}"
        try:
            make_folder(self.folder)
            session.save(temporary, checkpoints=checkpoints)
            os.replace(temporary, self.folder / name)
        except (Error, OSError) as error:
            log.warning("a session is not kept in %s: %s", self.folder, error)
        self._shrink()

    def _saved(self) -> list[SavedSession]:
        """The saved sessions of this engine; only headers of files that are new since the last call are read."""
        found = {}
        for path, stat in self._files():
            if path.name.startswith(self._identity) and path.suffix == SUFFIX:
                key = (path.name, stat.st_size, stat.st_ino)
                saved = self._seen.get(key) or self._read(path)
                if saved:
                    found[key] = saved
        self._seen = found
        return list(found.values())

    def _read(self, path: Path) -> SavedSession | None:
        try:
            header = _native.read_saved_session(str(path))
        except Error as error:
            self._remove(path, error)
            return None
        return SavedSession(path, header.tokens, tuple(header.checkpoints))

    def _files(self) -> list[tuple[Path, os.stat_result]]:
        """All files in the folder, the least recently used first; other processes may remove some meanwhile."""
        found = []
        try:
            entries = list(os.scandir(self.folder))
        except OSError:  # not there yet, or not to be read
            return []
        for entry in entries:
            with suppress(FileNotFoundError):
                found.append((Path(entry.path), entry.stat()))
        return sorted(found, key=lambda each: each[1].st_mtime)

    def _shrink(self) -> None:
        files = [each for each in self._files() if FILE_NAME.fullmatch(each[0].name)]
        total = sum(stat.st_size for _, stat in files)
        for path, stat in files:
            if total <= self._limit:
                break
            self._remove(path, "the folder is full")
            total -= stat.st_size
        for path, stat in self._files():
            if PARTIAL_SUFFIX in path.suffixes and time.time() - stat.st_mtime > ABANDONED_SECONDS:
                self._remove(path, "it was never finished")

    def _remove(self, path: Path, why: object) -> None:
        log.info("%s is removed: %s", path, why)
        with suppress(OSError):
            path.unlink()


def prepared_folder(folder: str | os.PathLike[str]) -> Path:
    """Makes a folder for a `DiskCache` where it is missing; RequestError where no file can be written there."""
    path = Path(folder)
    try:
        make_folder(path)
        probe = path / f"{uuid.uuid4().hex}{PARTIAL_SUFFIX}"
        probe.touch()  # permissions alone do not tell: the file system may be read-only
        probe.unlink()
    except OSError as error:
        raise RequestError(
            f"the folder of kept sessions (cache_dir), {path}: {error.strerror}: "
            "name a folder that can be made and written, or none"
        ) from error
    return path


def make_folder(folder: Path) -> None:
    """Makes a folder where it is missing; only its owner may read it, since the files hold conversations."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def digest(data: bytes) -> str:
    """The first 24 hexadecimal digits (96 bits) of the SHA-256 of `data`, for use in file names."""
    return hashlib.sha256(data).hexdigest()[:24]
