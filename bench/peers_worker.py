"""Runs one engine of `peers.py` in a process of its own.

Usage: peers_worker.py ours|llama MODEL DEVICE THREADS DEPTH CONTEXT [--no-extra-buffers]
When the model is loaded it answers {"vocab": N, "about": TEXT}, and then each request:
{"fill": [ids]} puts these into the state that verifies at DEPTH start from: {};
{"verify": [ids], "depth": 0 or DEPTH} and {"prefill": [ids]}: {"seconds": S};
{"experts": [ids], "depth": ...}: {"experts": {tensor: distinct experts that the rows read}}, which only ours knows.
The time ends when the logits are there: those of every row of a verify, or of a prompt's last token. A verify runs
twice, and the second time counts, because an engine may keep the graph of the latest size only. Going back
is not counted.
"""

import ctypes
import json
import sys
import time
from collections.abc import Callable
from typing import Any, Protocol

Ids = list[int]


class Peer(Protocol):
    """The operations of both engines. An engine keeps an empty state and one of DEPTH positions."""

    vocab: int
    about: str

    def fill(self, ids: Ids) -> None:
        """Fills the deep state with these ids, which are as many as DEPTH."""

    def verify(self, ids: Ids, depth: int) -> float:
        """Returns the seconds for rows behind the state of this depth. The state stays as it was."""

    def prefill(self, ids: Ids) -> float:
        """Returns the seconds for a prompt in the empty state, which is empty again afterwards."""

    def experts(self, ids: Ids, depth: int) -> dict[str, int]:
        """Returns the distinct experts that a verify reads by tensor, or nothing if the engine cannot tell."""


def seconds(call: Callable[[], object]) -> float:
    """Returns the wall time of one call."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


class Ours:
    """ds4py, called through the native bindings. Python's engine and session would add nothing to the time."""

    def __init__(self, path: str, device: str, threads: int, depth: int, context: int) -> None:
        from ds4py import _native

        self.model = _native.Model.load(path, device=device, threads=threads)
        self.states = {at: _native.Session(self.model, context=context) for at in (0, depth)}
        self.deep = self.states[depth]
        self.vocab = self.model.hyperparameters.vocab
        self.about = f"weights {'interleaved' if self.model.packed_bytes else 'as they lie in the file'}"

    def fill(self, ids: Ids) -> None:
        self.deep.prefill(ids)

    def verify(self, ids: Ids, depth: int) -> float:
        return seconds(lambda: self.states[depth].verify(ids))

    def prefill(self, ids: Ids) -> float:
        state = self.states[0]
        found = seconds(lambda: state.prefill(ids))
        state.rewind(0)
        return found

    def experts(self, ids: Ids, depth: int) -> dict[str, int]:
        from must_read import measured_experts

        return measured_experts(self.states[depth].diagnostics.node_times(ids))


class Llama:
    """llama.cpp, called through its own interface.

    It cannot drop rows of this architecture by itself. As its speculative decoding does, this class restores a copy of
    what a batch overwrites, and cuts off the rest.
    """

    def __init__(self, path: str, device: str, threads: int, depth: int, context: int, *, extra_buffers: bool) -> None:
        import llama_cpp

        self.api: Any = llama_cpp
        self.log = llama_cpp.llama_log_callback(lambda level, text, data: None)
        llama_cpp.llama_log_set(self.log, None)
        settings = llama_cpp.llama_model_default_params()
        settings.n_gpu_layers = 0 if device == "cpu" else 999  # all layers
        settings.use_extra_bufts = extra_buffers
        self.model = llama_cpp.llama_model_load_from_file(path.encode(), settings)
        if not self.model:
            raise SystemExit(f"llama.cpp cannot load {path}")
        self.states = {at: self.open(threads, context) for at in (0, depth)}
        self.depth, self.copy = depth, (ctypes.c_uint8 * 0)()
        self.vocab = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self.model))
        system = llama_cpp.llama_print_system_info().decode()
        self.about = f"extra buffer types {'on' if extra_buffers else 'off'}; {system.strip(' |')}"

    def open(self, threads: int, context: int) -> Any:
        """Opens a context with llama.cpp's default batch sizes."""
        settings = self.api.llama_context_default_params()
        settings.n_ctx, settings.n_batch, settings.n_ubatch = context, 2048, 512
        settings.n_threads = settings.n_threads_batch = threads
        found = self.api.llama_init_from_model(self.model, settings)
        if not found:
            raise SystemExit("llama.cpp cannot open a context")
        return found

    def decode(self, state: Any, ids: Ids, position: int, *, every: bool) -> None:
        """Runs one batch. With `every`, each row gets logits; otherwise only the last row does."""
        batch = self.api.llama_batch_init(len(ids), 0, 1)
        batch.n_tokens = len(ids)
        for i, token in enumerate(ids):
            batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.seq_id[i][0] = token, position + i, 1, 0
            batch.logits[i] = every or i + 1 == len(ids)
        failed = self.api.llama_decode(state, batch)
        self.api.llama_batch_free(batch)
        if failed:
            raise SystemExit(f"llama_decode of {len(ids)} rows at {position} failed: {failed}")
        self.api.llama_synchronize(state)

    def run(self, state: Any, ids: Ids) -> None:
        """Runs a prompt in batches."""
        for begin in range(0, len(ids), 2048):
            self.decode(state, ids[begin : begin + 2048], begin, every=False)

    def fill(self, ids: Ids) -> None:
        state = self.states[self.depth]
        self.run(state, ids)
        size = self.api.llama_state_seq_get_size_ext(state, 0, self.api.LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY)
        self.copy = (ctypes.c_uint8 * size)()
        self.api.llama_state_seq_get_data_ext(state, self.copy, size, 0, self.api.LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY)

    def go_back(self, depth: int) -> None:
        """Drops what was decoded after the first `depth` positions."""
        state, api = self.states[depth], self.api
        memory, partial = api.llama_get_memory(state), api.LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY
        if depth == 0:
            api.llama_memory_clear(memory, False)
        elif not (
            api.llama_state_seq_set_data_ext(state, self.copy, len(self.copy), 0, partial)
            and api.llama_memory_seq_rm(memory, 0, depth, -1)
        ):
            raise SystemExit(f"llama.cpp cannot go back to position {depth}")

    def verify(self, ids: Ids, depth: int) -> float:
        found = seconds(lambda: self.decode(self.states[depth], ids, depth, every=True))
        self.go_back(depth)
        return found

    def prefill(self, ids: Ids) -> float:
        found = seconds(lambda: self.run(self.states[0], ids))
        self.go_back(0)
        return found

    def experts(self, ids: Ids, depth: int) -> dict[str, int]:
        return {}


def answer(engine: Peer, request: dict[str, Any]) -> dict[str, Any]:
    """Answers one request."""
    if "fill" in request:
        engine.fill(request["fill"])
        return {}
    if "experts" in request:
        return {"experts": engine.experts(request["experts"], request["depth"])}
    if "prefill" in request:
        return {"seconds": engine.prefill(request["prefill"])}
    return {"seconds": [engine.verify(request["verify"], request["depth"]) for _ in range(2)][1]}


def main() -> None:
    """Loads the engine, then answers requests until the input ends."""
    kind, path, device, *numbers = sys.argv[1:7]
    threads, depth, context = map(int, numbers)
    if kind == "ours":
        engine: Peer = Ours(path, device, threads, depth, context)
    else:
        engine = Llama(path, device, threads, depth, context, extra_buffers="--no-extra-buffers" not in sys.argv)
    print(json.dumps({"vocab": engine.vocab, "about": engine.about}), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(engine, json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
