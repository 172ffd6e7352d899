"""The engine: a loaded model that opens sessions and answers requests."""

from __future__ import annotations

import os
import threading
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from ds4py import _native, data
from ds4py.chat import Message, ReplyParser, encode_chat
from ds4py.chat.markers import USER
from ds4py.constants import DEFAULT_CONTEXT
from ds4py.deprecated import renamed_arguments
from ds4py.errors import RequestError, UnprovenDevice
from ds4py.generation import Cancel, ChatStream, GenerationOptions, PlainReply, Reply, check_options
from ds4py.generation.in_process import StaysInProcess
from ds4py.memory import DeviceOptions
from ds4py.prefix_cache import (
    DEFAULT_CACHE_BYTES,
    LeasedSession,
    SessionPool,
    cache_breakpoints,
    caller_session,
    check_length,
    prepared_folder,
)
from ds4py.runtime.backend_status import unproven_note
from ds4py.runtime.loading import LoadedModels, ModelFiles, load_models
from ds4py.runtime.session import Session
from ds4py.runtime.token_ids import token_ids
from ds4py.speculative import DrafterInfo
from ds4py.speculative.cost_store import CostStore
from ds4py.tokenizer import Tokenizer

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Engine(StaysInProcess):
    """A DeepSeek-V4 target model on one or several devices, with its drafter where one is given.

    Several threads may use it, each with sessions or streams of its own. An engine stays in its process: it cannot be
    pickled, and a child process made with `os.fork` must open one itself.

    Args:
        path: a GGUF file, or any shard of a split one. None loads the tiny model inside the package.
        drafter: a DSpark drafter for the target (GGUF). None loads none; the tiny model then gets its own drafter.
        device: "cpu", "cuda:0", "hip:0", "metal", "vulkan:0", "rpc:HOST:PORT" (an RPC server of ggml's), or "auto":
            what the environment variable DS4_DEVICE names, else the first GPU, else the CPU. Several names
            with commas between them get consecutive layers in this order; a drafter goes to the last device.
        split: the number of layers of each device; they sum to the model's. Empty gives equal parts. With "auto" the
            devices are the GPUs in order.
        cpu_moe: the number of first layers whose routed experts stay on the CPU and are computed there, or "all".
        threads: CPU threads of a session. None takes the physical cores this process may use, and fewer while others
            use them; without `repack` always all, because results could depend on their number.
        repack: interleave the weights at load for the CPU's kernels, where memory suffices; False uses them as they lie
            in the file, which starts sooner, runs slower, and may be larger than memory.
        context: positions of a session where `session` names no number; None takes 8192, or the model's if that is
            less. The devices must have memory for one such session.
        sessions, cache_dir, cache_bytes: as for `SessionPool`; they are of `pool`, which `chat` and `complete` use.
        progress: called with the fraction of the weights that is loaded, 0 to 1.

    Attributes:
        device: names of the devices that have layers, in order, with commas between them.
        device_map: the same with the layers of each, and what stays on the CPU.
        notes: what a user should know of memory and of the devices that the model went to.
        threads: the most CPU threads that a session computes with.
        nodes: NUMA nodes that this process may use.
        spread_over_nodes: whether repacked weights lie on all of them in turn, and threads stay on their cores.
        repacked: whether weights are interleaved, at load or in the file.
        drafter: what the loaded drafter is; None without one.
        costs: measured seconds of the steps of a cycle, those of earlier starts included.
        identity: what costs and saved sessions depend on.

    Raises:
        FormatError: a file is damaged, not a DeepSeek-V4 target or not a DSpark drafter.
        PairError: target and drafter do not fit together.
        RequestError: the device or an argument does not exist, `cache_dir` cannot be written, or a packed file is
            opened where the CPU's own kernels do not compute.
        BackendError: a device has no room, or a remote device does not answer. The message says what would fit; the
            device "auto" takes that by itself.

    Warns with `UnprovenDevice` for a device on which nobody has run ds4py yet (`ds4py.runtime.backend_status`).
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
            prepared_folder(cache_dir)  # a folder that cannot be used is refused before the model is loaded
        files = ModelFiles.open(self.path, drafter)
        layers = files.layers if cpu_moe == "all" else cpu_moe
        wanted = DeviceOptions(device, tuple(split), layers, min(context or DEFAULT_CONTEXT, files.context))
        models = load_models(files, self.path, drafter, wanted, threads=threads, repack=repack, progress=progress)
        self._models: LoadedModels | None = models
        self._context = context
        self._describe(models)
        for name in self.device.split(","):
            if note := unproven_note(name, _native.cpu_kernels()[0]):
                warnings.warn(note, UnprovenDevice, stacklevel=2)
        self.identity = self._identity(models, repack)
        store = CostStore(self.identity)
        self.costs = store.load()
        self._pool: SessionPool[Session] | None = None
        self._pool_lock = threading.Lock()
        self._pool_options: dict[str, Any] = {"sessions": sessions, "cache_dir": cache_dir, "cache_bytes": cache_bytes}
        self._keep_costs = weakref.finalize(self, store.keep, self.costs)  # also where nobody closes it

    def _describe(self, models: LoadedModels) -> None:
        """Sets the attributes that say what is loaded, and where."""
        model = models.target
        self.drafter: DrafterInfo | None = models.info
        self.notes: tuple[str, ...] = models.notes
        self.hyperparameters = model.hyperparameters
        metadata = model.file.metadata()
        self.name = str(metadata.get("general.name") or os.path.basename(self.path))
        self.tokenizer = Tokenizer.from_metadata(metadata, vocab_size=self.hyperparameters.vocab)
        self.device: str = model.device
        self.device_map: str = model.device_map
        self.threads: int = model.threads
        self.nodes: int = model.nodes
        self.spread_over_nodes: bool = model.spread_over_nodes
        self.repacked: bool = model.packed_bytes > 0

    @property
    def placement(self) -> str:
        """The old name of `device_map`, which warns and works for one more version."""
        warnings.warn("Engine.placement is now Engine.device_map", DeprecationWarning, stacklevel=2)
        return self.device_map

    @property
    def context_length(self) -> int:
        """The number of positions that the model was trained for."""
        return int(self.hyperparameters.context)

    @property
    def default_context(self) -> int:
        """The positions of a session where no number is given: `context`, else 8192 or the trained context if less."""
        return self._context or min(DEFAULT_CONTEXT, self.context_length)

    @property
    def pool(self) -> SessionPool[Session]:
        """The sessions of `chat` and `complete`; opened at first use. Set another pool to choose its context."""
        with self._pool_lock:
            if self._pool is None:
                self._pool = SessionPool(self, **self._pool_options)
            return self._pool

    @pool.setter
    def pool(self, pool: SessionPool[Session]) -> None:
        if self._pool is not None:
            self._pool.close()
        self._pool = pool

    def session(
        self, *, context: int | None = None, kv_dtype: Literal["f16", "f32"] = "f16", drafter: bool = True
    ) -> Session:
        """Opens an empty session.

        Args:
            context: positions that it can hold; None takes `default_context`.
            kv_dtype: type of the KV state.
            drafter: False opens it as if the engine had no drafter, which saves the drafter's state.

        Raises RequestError for a context beyond the model's, BackendError where a device has no room.
        """
        positions = self.default_context if context is None else context
        models = self._live()
        used, info = (models.drafter, models.info) if drafter else (None, None)
        native = _native.Session(models.target, context=positions, kv_dtype=kv_dtype, drafter=used)
        return Session(native, self.tokenizer, info, self.costs, self)

    def load_session(self, path: str | os.PathLike[str], *, context: int | None = None) -> Session:
        """Opens a session that `Session.save` wrote with this model.

        Args:
            context: positions that it can hold; None takes those of the saved session.

        Raises FormatError where the file is damaged, of another model, or longer than the context.
        """
        models = self._live()
        native = _native.Session.load(models.target, os.fspath(path), drafter=models.drafter, context=context)
        return Session(native, self.tokenizer, models.info, self.costs, self)

    @renamed_arguments(width="draft_length")
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
        """Answers a conversation; the work starts when the stream is read.

        Leading tokens of the conversation that a session holds already are not evaluated again.

        Args:
            messages: the whole conversation, as for `ds4py.chat.encode_chat`.
            tools: functions that the model may call, as OpenAI's API declares them.
            thinking: let the model think before it answers.
            effort: "high", "max" or None; how long to think.
            session: answers in this session, which is rewound to where it agrees with the conversation. None takes the
                session of `pool` that holds the most of it.
            options: as for `Session.generate`.

        Raises RequestError for messages that cannot be laid out, a conversation that does not fit, a session of another
        engine, and where this engine or the session is closed.
        """
        ids = encode_chat(self.tokenizer, messages, tools=tools, thinking=thinking, effort=effort)
        return self._stream(ids, ReplyParser(thinking=thinking, tools=bool(tools)), session, options)

    @renamed_arguments(width="draft_length")
    def complete(
        self, prompt: str | Sequence[int], *, session: Session | None = None, **options: Unpack[GenerationOptions]
    ) -> ChatStream:
        """Continues a raw prompt, text or ids, as `chat` answers a conversation; every event is `Content`."""
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

        def lend(cancel: Cancel) -> LeasedSession[Session]:
            if session is not None:
                return caller_session(session, ids, cancel)
            return self.pool.acquire(ids, cancel, breakpoints)

        return ChatStream(ids, lend, reply, options, breakpoints)

    def close(self) -> None:
        """Closes the pool and releases the model, whose memory is freed with the last open session."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None
        self._keep_costs()
        self._models = None

    def _identity(self, models: LoadedModels, repack: bool) -> dict[str, str | int]:
        """Returns what measured costs and saved sessions depend on: model, drafter, devices, threads and build."""
        return {
            "model": f"{models.target.fingerprint:016x}",
            "drafter": f"{models.drafter.fingerprint:016x}" if models.drafter else "",
            "device": self.device_map,
            "threads": self.threads,
            "repack": int(repack),
            "build": _native.commit(),
        }

    def _live(self) -> LoadedModels:
        if self._models is None:
            raise RequestError("this engine is closed")
        return self._models

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
