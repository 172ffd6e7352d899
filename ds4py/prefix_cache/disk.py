"""Sessions that were put away: files in a folder that several processes may share."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from ds4py import _native
from ds4py.errors import Error, FormatError, RequestError
from ds4py.prefix_cache.common_prefix import common_prefix
from ds4py.prefix_cache.prefix import Ids

if TYPE_CHECKING:
    from ds4py.runtime.engine import Engine
    from ds4py.runtime.session import Session

ENDING = ".ds4state"
NAME: Final = re.compile(rf"[0-9a-f]{{24}}-[0-9a-f]{{24}}{re.escape(ENDING)}")
"""Of the files kept here; a session that somebody saved into the folder has another."""
UNFINISHED = ".ds4part"
ABANDONED = 3600.0
"""Seconds after which a file that is still unfinished belongs to nobody."""

log = logging.getLogger(__name__)


class Saved(NamedTuple):
    """A file, and what its beginning says of it."""

    path: Path
    tokens: Ids
    checkpoints: tuple[int, ...]

    def reusable(self, ids: Ids) -> int:
        """How many of `ids` would need no evaluation."""
        shared = common_prefix(self.tokens, ids)
        if shared == len(self.tokens):
            return shared
        return max((position for position in self.checkpoints if position <= shared), default=0)


class StateCache:
    """Saved sessions of one engine in `folder`, whose files take at most `limit` bytes; the longest unused go first.

    A file's name says what it is bound to: model, drafter, KV type, device, build. So files of other engines and
    builds are never looked at, and only removed as the longest unused. What cannot be read is as if it were not there,
    and is removed; what cannot be written is not kept. Neither is an error, but a folder that is of no use from the
    start is: RequestError.
    """

    def __init__(self, folder: str | os.PathLike[str], limit: int, identity: dict[str, str | int]) -> None:
        self.folder = prepared(folder)
        self._limit = limit
        self._identity = digest(json.dumps(identity, sort_keys=True).encode())
        self._seen: dict[tuple[str, int, int], Saved] = {}

    def find(self, ids: Ids, context: int) -> Saved | None:
        """The file that spares the most evaluation of `ids` in so large a context; None where none spares any."""
        fitting = (saved for saved in self._saved() if len(saved.tokens) <= context)
        best = max(fitting, key=lambda saved: saved.reusable(ids), default=None)
        return best if best and best.reusable(ids) else None

    def load(self, saved: Saved, engine: Engine, context: int) -> Session | None:
        """The session of a file, which counts as used; None where it cannot be had, and gone where it is damaged."""
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

    def keep(self, session: Session, checkpoints: Sequence[int]) -> None:
        """Writes a session under a temporary name and renames it, then makes room."""
        name = f"{self._identity}-{digest(session.history().tobytes())}{ENDING}"
        temporary = self.folder / f"{uuid.uuid4().hex}{UNFINISHED}"
        try:
            made(self.folder)
            session.save(temporary, checkpoints=checkpoints)
            os.replace(temporary, self.folder / name)
        except (Error, OSError) as error:
            log.warning("a session is not kept in %s: %s", self.folder, error)
        self._shrink()

    def _saved(self) -> list[Saved]:
        """The files of this engine, read as far as is needed; those known from before are not read again."""
        found = {}
        for path, stat in self._files():
            if path.name.startswith(self._identity) and path.suffix == ENDING:
                key = (path.name, stat.st_size, stat.st_ino)
                saved = self._seen.get(key) or self._read(path)
                if saved:
                    found[key] = saved
        self._seen = found
        return list(found.values())

    def _read(self, path: Path) -> Saved | None:
        try:
            beginning = _native.read_saved_session(str(path))
        except Error as error:
            self._remove(path, error)
            return None
        return Saved(path, beginning["tokens"], tuple(beginning["checkpoints"]))

    def _files(self) -> list[tuple[Path, os.stat_result]]:
        """All there are, the longest unused first; others may be removing them at the same time."""
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
        files = [each for each in self._files() if NAME.fullmatch(each[0].name)]
        total = sum(stat.st_size for _, stat in files)
        for path, stat in files:
            if total <= self._limit:
                break
            self._remove(path, "the folder is full")
            total -= stat.st_size
        for path, stat in self._files():
            if UNFINISHED in path.suffixes and time.time() - stat.st_mtime > ABANDONED:
                self._remove(path, "it was never finished")

    def _remove(self, path: Path, why: object) -> None:
        log.info("%s is removed: %s", path, why)
        with suppress(OSError):
            path.unlink()


def prepared(folder: str | os.PathLike[str]) -> Path:
    """A folder for a `StateCache`, made where it is missing. RequestError where no file can be written there."""
    path = Path(folder)
    try:
        made(path)
        probe = path / f"{uuid.uuid4().hex}{UNFINISHED}"
        probe.touch()  # permissions alone do not tell: the file system may be read-only
        probe.unlink()
    except OSError as error:
        raise RequestError(
            f"the folder of kept sessions (cache_dir), {path}: {error.strerror}: "
            "name a folder that can be made and written, or none"
        ) from error
    return path


def made(folder: Path) -> None:
    """Makes a folder where it is missing; conversations are nobody else's business."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def digest(data: bytes) -> str:
    """Short enough for a name, long enough not to meet another."""
    return hashlib.sha256(data).hexdigest()[:24]
