"""What the tests that run a model share."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import Cli, cli_in
from device import DEVICE, open_engine
from generating import PROMPT
from paths import GOLDEN, ROOT
from rpc_server import rpc_server

import ds4py

sys.path.append(str(ROOT))  # for `tiny`; behind the installed ds4py
os.environ["DS4_TRUST"] = "all"  # on any processor no note is printed; test_backend_status.py tests the notes
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell starts background jobs so, and programs inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache directory of their own, so that tests neither read nor write what the user's machine has learned."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """The command line, run in a folder of the test's own."""
    return cli_in(tmp_path)


@pytest.fixture(scope="session")
def tiny() -> Iterator[ds4py.Engine]:
    """The tiny golden target."""
    with open_engine("tiny-target-f32.gguf") as engine:
        yield engine


@pytest.fixture(scope="session")
def hard() -> Iterator[ds4py.Engine]:
    """The golden target whose hyper-connections and clamps show small mistakes."""
    with open_engine("hard-target-f32.gguf") as engine:
        yield engine


@pytest.fixture(scope="session")
def pair() -> Iterator[ds4py.Engine]:
    """The tiny golden target with its drafter."""
    target, drafter = GOLDEN / "tiny-target-f32.gguf", GOLDEN / "tiny-drafter-f32.gguf"
    with ds4py.Engine(target, drafter=drafter, device=DEVICE, threads=1) as engine:
        yield engine


@pytest.fixture(scope="module")
def embedded() -> Iterator[ds4py.Engine]:
    """The pair in the package: it has the tokens of the chat layout."""
    with ds4py.Engine() as engine:
        yield engine


@pytest.fixture(scope="session")
def remote() -> Iterator[str]:
    """The name of a device whose memory this process cannot address."""
    with rpc_server() as device:
        yield device


@pytest.fixture(scope="session")
def shared(pair: ds4py.Engine) -> Iterator[ds4py.Session]:
    """A session for whoever begins by emptying it: its graphs are built once."""
    with pair.session(context=512, kv_dtype="f32") as session:
        yield session


@pytest.fixture
def prompted(shared: ds4py.Session) -> ds4py.Session:
    """A session of the pair that holds `generating.PROMPT`."""
    shared.rewind(0)
    shared.prefill(PROMPT)
    return shared
