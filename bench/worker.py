"""Runs one engine in a process of its own, driven by lines of JSON, because two ggml libraries cannot share a process.

Usage: worker.py ours|peer MODEL THREADS CONTEXT [--no-extra-buffers]
It answers `{"vocab": N}` when the model is loaded, then each request `{"prompt": [ids], "decode": [ids]}` with
`{"prefill": seconds, "decode": [seconds of each token]}`.
"""

import json
import sys
import time
from collections.abc import Callable


class Ours:
    """ds4py. `prefill` computes the logits of the last token, as generating does."""

    def __init__(self, path: str, threads: int, context: int) -> None:
        import ds4py

        self.engine = ds4py.Engine(path, device="cpu", threads=threads)
        self.session = self.engine.session(context=context)
        self.vocab = self.engine.hyperparameters.vocab

    def reset(self) -> None:
        """Empties the state."""
        self.session.rewind(0)

    def prefill(self, tokens: list[int]) -> None:
        """Runs a prompt, and computes the logits of its last token."""
        self.session.prefill(tokens)

    def decode(self, token: int) -> None:
        """Runs one token, and computes its logits."""
        self.session.prefill([token])


class Peer:
    """llama-cpp-python, called through its low-level eval."""

    def __init__(self, path: str, threads: int, context: int, *, extra_buffers: bool) -> None:
        import llama_cpp

        if not extra_buffers:
            defaults = llama_cpp.llama_cpp.llama_model_default_params

            def without_extra_buffers() -> object:
                params = defaults()
                params.use_extra_bufts = False
                return params

            llama_cpp.llama_cpp.llama_model_default_params = without_extra_buffers
        self.model = llama_cpp.Llama(
            path,
            n_ctx=context,
            n_batch=512,
            n_ubatch=512,
            n_threads=threads,
            n_threads_batch=threads,
            flash_attn=False,
            verbose=False,
        )
        self.vocab = self.model.n_vocab()

    def reset(self) -> None:
        """Empties the state."""
        self.model.reset()
        self.model._ctx.kv_cache_clear()

    def prefill(self, tokens: list[int]) -> None:
        """Runs a prompt, and computes the logits of its last token."""
        self.model.eval(tokens)

    def decode(self, token: int) -> None:
        """Runs one token, and computes its logits."""
        self.model.eval([token])


def seconds(call: Callable[[], None]) -> float:
    """Returns the wall time of one call."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def main() -> None:
    """Loads the engine, then answers requests until the input ends."""
    kind, path, threads, context = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    if kind == "ours":
        engine: Ours | Peer = Ours(path, threads, context)
    else:
        engine = Peer(path, threads, context, extra_buffers="--no-extra-buffers" not in sys.argv)
    print(json.dumps({"vocab": engine.vocab}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        engine.reset()
        prefill = seconds(lambda prompt=request["prompt"]: engine.prefill(prompt))
        decode = [seconds(lambda token=token: engine.decode(token)) for token in request["decode"]]
        print(json.dumps({"prefill": prefill, "decode": decode}), flush=True)


main()
