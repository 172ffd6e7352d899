"""A loaded model, and the sessions it opens."""

from __future__ import annotations

import os
import threading
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from ds4py import _native, data
from ds4py.chat import Message, encode_chat
from ds4py.chat.markers import USER
from ds4py.chat.reply import ReplyParser
from ds4py.errors import RequestError, UnprovenDevice
from ds4py.generation.cancelling import Cancel
from ds4py.generation.in_process import StaysInProcess
from ds4py.generation.options import GenerationOptions, check_options
from ds4py.generation.stream import ChatStream, PlainReply, Reply
from ds4py.memory.plan import DeviceOptions, find_plan, measure_files, shared_memory_note
from ds4py.prefix_cache import (
    DEFAULT_CACHE_BYTES,
    CallerSession,
    LeasedSession,
    SessionPool,
    cache_breakpoints,
    check_length,
    prepared,
)
from ds4py.runtime.backend_status import unproven_note
from ds4py.runtime.rpc_turns import taking_turns, turn
from ds4py.runtime.session import Session, token_ids
from ds4py.speculative import DrafterInfo
from ds4py.speculative.cost_store import CostStore
from ds4py.tokenizer import Tokenizer

if TYPE_CHECKING:
    from typing_extensions import Unpack

DEFAULT_CONTEXT = _native.DEFAULT_CONTEXT


class Engine(StaysInProcess):
    """A DeepSeek-V4 target on a device; for several threads, each with sessions or streams of its own.

    It stays in its process: it cannot be pickled, and a child made with `os.fork` must open one itself.

    Args:
        path: a GGUF file, or any shard of a split one. None loads the tiny model inside the package.
        drafter: a DSpark drafter for it (GGUF). None loads none, but with the embedded target its own.
        device: "cpu", "cuda:0", "hip:0", "metal", "vulkan:0", "rpc:HOST:PORT" (an RPC server of ggml's), or "auto":
            what the environment variable DS4_DEVICE names, else the first GPU, else the CPU. Several after commas share
            the layers out in order; state lies with its layer, a drafter with the last one.
        split: layers of each device, together the model's; without it several devices get equal parts. With "auto" the
            devices are the GPUs in order.
        cpu_moe: routed experts of so many first layers, or of "all", stay on the CPU and are computed there. Changes
            nothing on the CPU.
        threads: CPU threads of a session. None takes the physical cores this process may use, and fewer while others
            use them; without `repack` always all, because results could depend on their number.
        repack: interleave the weights at load for the CPU's kernels, where memory suffices; False uses them as they lie
            in the file, which starts sooner, runs slower, and may be larger than memory.
        context: positions of a session where none are named, for which there must be memory. None: `default_context`.
        sessions, cache_dir, cache_bytes: of `pool`, the live sessions of `chat` and `complete`.
        progress: called with the fraction loaded, 0 to 1.

    Attributes:
        device: the devices that have layers, in order, with commas.
        placement: the same with the layers of each, and what stays on the CPU.
        notes: what there is to say of memory and where the model went.
        threads: the most that a session computes with.
        nodes: NUMA nodes that this process may use.
        spread_over_nodes: whether repacked weights lie on all of them in turn, and threads stay on their cores.
        repacked: whether weights are interleaved, at load or in the file.
        drafter: what the loaded drafter is; None without one.
        costs: what cycles have cost so far, those of earlier starts included.
        identity: what costs and kept sessions depend on.

    Raises:
        FormatError: a file is damaged, not a DeepSeek-V4 target or not a DSpark drafter.
        PairError: target and drafter do not fit together.
        RequestError: the device or an argument does not exist, `cache_dir` cannot be written, or a packed file is
            opened where the CPU's own kernels do not compute.
        BackendError: a device has no room (with what would fit; "auto" takes that by itself), or a remote one does not
            answer.

    Warns with `UnprovenDevice` on a device on which nobody has run this program yet (`ds4py.runtime.backend_status`).
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        drafter: str | os.PathLike[str] | None = None,
        device: str = "auto",
        split: Sequence[int] = (),
        cpu_moe: int | Literal["all"] = 0,
        context: int | None = None,
        threads: int | None = None,
        repack: bool = True,
        sessions: int = 4,
        cache_dir: str | os.PathLike[str] | None = None,
        cache_bytes: int = DEFAULT_CACHE_BYTES,
        progress: Callable[[float], None] | None = None,
    ) -> None:
        self.embedded = path is None
        self.path = os.fspath(path) if path is not None else str(data.TARGET)
        if self.embedded and drafter is None:
            drafter = data.DRAFTER
        if threads is None and self.embedded:  # too small to share: barriers would take most of its time
            threads = 1
        if cache_dir is not None:
            prepared(cache_dir)  # what cannot be used is said before the model is loaded
        files = _files(self.path, drafter)
        layers, trained = _checked(*files)
        self._context = context
        wanted = DeviceOptions(
            device,
            tuple(split),
            layers if cpu_moe == "all" else cpu_moe,
            min(context or DEFAULT_CONTEXT, trained),
        )
        target_share = _target_share(*files)
        with turn(os.environ.get("DS4_DEVICE", device) if device == "auto" else device):
            plan = find_plan(measure_files(*files, repack=repack), wanted, layers)
            self._model: _native.Model | None = _native.Model.load(
                self.path,
                device=plan.wanted.device,
                split=list(plan.wanted.split),
                cpu_moe=plan.wanted.cpu_moe,
                threads=threads,
                repack=repack,
                reserve=plan.host_reserve,
                progress=_part(progress, 0.0, target_share),
            )
            self._drafter: _native.Drafter | None = None
            self.drafter: DrafterInfo | None = None
            if drafter is not None:
                drafter = os.fspath(drafter)
                self._drafter = _native.Drafter.load(drafter, self._model, progress=_part(progress, target_share, 1.0))
                self.drafter = DrafterInfo.of(drafter, self._drafter)
        elsewhere = shared_memory_note(files[0].paths, files[0].file_bytes)
        self.notes: tuple[str, ...] = plan.notes + ((elsewhere,) if elsewhere else ())
        self.hyperparameters = self._model.hyperparameters
        metadata = self._model.file.metadata()
        self.name = str(metadata.get("general.name") or os.path.basename(self.path))
        self.tokenizer = Tokenizer.from_metadata(metadata, vocab_size=self.hyperparameters.vocab)
        self.device: str = self._model.device
        self.placement: str = self._model.device_map
        for name in self.device.split(","):
            if note := unproven_note(name, _native.cpu_kernels()[0]):
                warnings.warn(note, UnprovenDevice, stacklevel=2)
        self.threads: int = self._model.threads
        self.nodes: int = self._model.nodes
        self.spread_over_nodes: bool = self._model.spread_over_nodes
        self.repacked: bool = self._model.packed_bytes > 0
        self.identity = self._identity(repack)
        store = CostStore(self.identity)
        self.costs = store.load()
        self._pool: SessionPool | None = None
        self._pool_lock = threading.Lock()
        self._pool_options: dict[str, Any] = {"sessions": sessions, "cache_dir": cache_dir, "cache_bytes": cache_bytes}
        self._keep_costs = weakref.finalize(self, store.keep, self.costs)  # also where nobody closes it

    @property
    def context_length(self) -> int:
        """Positions the model was trained for."""
        return int(self.hyperparameters.context)

    @property
    def default_context(self) -> int:
        """Positions of a session where none are named: 8192, or what the model was trained for if that is less."""
        return self._context or min(DEFAULT_CONTEXT, self.context_length)

    @property
    def pool(self) -> SessionPool:
        """The live sessions of `chat` and `complete`, made at first use; set another one to choose its context."""
        with self._pool_lock:
            if self._pool is None:
                self._pool = SessionPool(self, **self._pool_options)
            return self._pool

    @pool.setter
    def pool(self, pool: SessionPool) -> None:
        if self._pool is not None:
            self._pool.close()
        self._pool = pool

    def session(
        self, *, context: int | None = None, kv_dtype: Literal["f16", "f32"] = "f16", drafter: bool = True
    ) -> Session:
        """Opens a session of `context` positions (default: `default_context`).

        Without `drafter` it is as if the engine had none.

        Raises RequestError for a context beyond the model's, BackendError when there is no room.
        """
        positions = self.default_context if context is None else context
        used, info = (self._drafter, self.drafter) if drafter else (None, None)
        with turn(self.device):
            native = _native.Session(self._live(), context=positions, kv_dtype=kv_dtype, drafter=used)
        native = taking_turns(native, self.device)
        return Session(native, self.tokenizer, info, self.costs, self)

    def load_session(self, path: str | os.PathLike[str], *, context: int | None = None) -> Session:
        """Continues a session that `Session.save` wrote with this model, in as large a context or in `context`.

        Raises FormatError when the file is damaged, of another model, or longer than the context.
        """
        with turn(self.device):
            native = _native.Session.load(self._live(), os.fspath(path), drafter=self._drafter, context=context)
        native = taking_turns(native, self.device)
        return Session(native, self.tokenizer, self.drafter, self.costs, self)

    def chat(
        self,
        messages: Sequence[Message | Mapping[str, object]],
        *,
        tools: Sequence[Mapping[str, object]] | None = None,
        thinking: bool = False,
        effort: str | None = None,
        session: Session | None = None,
        **options: Unpack[GenerationOptions],
    ) -> ChatStream:
        """Answers a conversation, as a stream that starts when it is read.

        What a live session holds of the conversation already is not evaluated again.

        Args:
            messages: the whole conversation, as for `ds4py.chat.encode_chat`.
            tools: functions that the model may call, as OpenAI's API declares them.
            thinking: let the model think before it answers.
            effort: "high", "max" or None; how long to think.
            session: answer in this one; it goes back to where it agrees with the conversation. None takes the session
                of `pool` that holds the most of it.
            options: as for `Session.generate`.

        Raises RequestError for messages that cannot be laid out, a conversation that does not fit, a session of another
        engine, and where this engine or the session is closed.
        """
        ids = encode_chat(self.tokenizer, messages, tools=tools, thinking=thinking, effort=effort)
        return self._stream(ids, ReplyParser(thinking=thinking, tools=bool(tools)), session, options)

    def complete(
        self, prompt: str | Sequence[int], *, session: Session | None = None, **options: Unpack[GenerationOptions]
    ) -> ChatStream:
        """Continues a raw prompt, text or ids, as `chat` does a conversation; all that comes is content."""
        ids = self.tokenizer.encode(prompt) if isinstance(prompt, str) else prompt
        return self._stream(ids, PlainReply(), session, options)

    def _stream(
        self, prompt: Sequence[int], reply: Reply, session: Session | None, options: GenerationOptions
    ) -> ChatStream:
        self._live()
        if session is not None and session.engine is not self:
            raise RequestError("the session is of another engine: give one that this engine opened, or none")
        ids = token_ids(prompt)
        check_length(ids, self.pool.context if session is None else session.context)
        check_options(options, self.drafter, self.tokenizer.vocab_size)
        breakpoints = cache_breakpoints(ids, self.tokenizer.token_id(USER))

        def lend(cancel: Cancel) -> LeasedSession | CallerSession:
            return (
                self.pool.acquire(ids, cancel, breakpoints) if session is None else CallerSession(session, ids, cancel)
            )

        return ChatStream(ids, lend, reply, options, breakpoints)

    def close(self) -> None:
        """Lets go of the model and of the pool; the memory is freed with the last open session."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None
        self._keep_costs()
        with turn(self.device):
            self._model = self._drafter = None

    def _identity(self, repack: bool) -> dict[str, str | int]:
        """Of model, drafter, device and build."""
        drafter = self._drafter
        return {
            "model": f"{self._live().fingerprint:016x}",
            "drafter": f"{drafter.fingerprint:016x}" if drafter else "",
            "device": self.placement,
            "threads": self.threads,
            "repack": int(repack),
            "build": _native.commit(),
        }

    def _live(self) -> _native.Model:
        if self._model is None:
            raise RequestError("this engine is closed")
        return self._model

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _files(target: str, drafter: str | os.PathLike[str] | None) -> tuple[_native.GgufFile, _native.GgufFile | None]:
    opened = _native.GgufFile.open(target)
    return opened, None if drafter is None else _native.GgufFile.open(os.fspath(drafter))


def _checked(target: _native.GgufFile, drafter: _native.GgufFile | None) -> tuple[int, int]:
    """Layers and trained context of a target. Raises for a pair that does not fit, before anything is loaded."""
    numbers = _native.read_hyperparameters(target)
    if drafter is not None:
        _native.read_drafter(drafter, numbers)
    return numbers.layers, numbers.context


def _target_share(target: _native.GgufFile, drafter: _native.GgufFile | None) -> float:
    """The target's part of the bytes to load."""
    return target.file_bytes / (target.file_bytes + (drafter.file_bytes if drafter else 0))


def _part(progress: Callable[[float], None] | None, begin: float, end: float) -> Callable[[float], None] | None:
    """Progress of a part that goes from `begin` to `end` of the whole."""
    if progress is None:
        return None
    report = progress
    return lambda fraction: report(begin + (end - begin) * fraction)
