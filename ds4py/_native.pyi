"""
The native core of ds4py.
"""

from __future__ import annotations

import collections.abc
import os
import typing

import numpy
import numpy.typing

__all__: list[str] = [
    "CSA_RATIO",
    "DEFAULT_CONTEXT",
    "HCA_RATIO",
    "MAX_ROWS",
    "PACKED_LAYOUT",
    "PACKED_TILE",
    "BackendError",
    "Cancelled",
    "DeviceMemory",
    "DraftBlock",
    "DraftTrace",
    "Drafter",
    "DrafterHyperparameters",
    "Error",
    "FormatError",
    "GgufFile",
    "GgufTensor",
    "GraphStatistics",
    "Hyperparameters",
    "Model",
    "NodeTime",
    "Packing",
    "PairError",
    "RequestError",
    "Rng",
    "Sampler",
    "SamplingPolicy",
    "SavedSession",
    "Session",
    "SessionDiagnostics",
    "TrafficCount",
    "accept",
    "available_memory",
    "backends",
    "check_weights",
    "commit",
    "cpu_kernels",
    "decode_fp4",
    "decode_fp8",
    "default_threads",
    "draw",
    "exit_on_abort",
    "fp4_to_mxfp4",
    "greatest_magnitude",
    "load_backends",
    "logprobs",
    "memory_by_device",
    "pack_rows",
    "packing",
    "philox4x32",
    "read_drafter",
    "read_hyperparameters",
    "read_saved_session",
    "serve_rpc",
]

class Error(Exception):
    pass

class FormatError(Error):
    pass

class PairError(Error):
    pass

class RequestError(Error):
    pass

class BackendError(Error):
    pass

class Cancelled(Error):
    pass

class GgufTensor:
    """
    What a GGUF file says of one tensor; unpacks in the order of its fields.
    """
    def __iter__(self) -> collections.abc.Iterator: ...
    def __repr__(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def packed(self) -> int:
        """
        Matrices that lie packed for the CPU's kernels; 0: rows as ggml has them.
        """
    @property
    def shape(self) -> tuple:
        """
        In ggml's order: the contiguous dimension first.
        """
    @property
    def shard(self) -> int:
        """
        Index of the file in GgufFile.paths.
        """
    @property
    def type(self) -> str:
        """
        ggml's name, as in Q4_K.
        """

class GgufFile:
    """
    A GGUF file, or all shards of a split one; validated.
    """
    @staticmethod
    def open(path: os.PathLike | str | bytes) -> GgufFile:
        """
        Maps a file; any shard opens its set. Raises FormatError naming file, key or tensor.
        """
    def metadata(self) -> dict:
        """
        A new dict of the metadata of the first shard, arrays as lists.
        """
    def tensors(self) -> list[GgufTensor]:
        """
        All tensors, in the order of the files.
        """
    @property
    def file_bytes(self) -> int:
        """
        Size of all shards.
        """
    @property
    def paths(self) -> list:
        """
        The shards in order.
        """
    @property
    def version(self) -> int: ...

class Hyperparameters:
    """
    The numbers that shape a DS4 target; read-only.
    """
    @property
    def clamp_routed(self) -> list[float]: ...
    @property
    def clamp_shared(self) -> list[float]: ...
    @property
    def compress_rope_base(self) -> float: ...
    @property
    def context(self) -> int: ...
    @property
    def expert_widths(self) -> list[int]: ...
    @property
    def experts(self) -> int: ...
    @property
    def experts_used(self) -> int: ...
    @property
    def hash_layers(self) -> int: ...
    @property
    def hc_epsilon(self) -> float: ...
    @property
    def head_size(self) -> int: ...
    @property
    def heads(self) -> int: ...
    @property
    def hidden(self) -> int: ...
    @property
    def index_heads(self) -> int: ...
    @property
    def index_size(self) -> int: ...
    @property
    def index_top_k(self) -> int: ...
    @property
    def layers(self) -> int: ...
    @property
    def norm_epsilon(self) -> float: ...
    @property
    def normalise_weights(self) -> bool: ...
    @property
    def output_groups(self) -> int: ...
    @property
    def output_rank(self) -> int: ...
    @property
    def query_rank(self) -> int: ...
    @property
    def ratios(self) -> list[int]: ...
    @property
    def rope_base(self) -> float: ...
    @property
    def rope_size(self) -> int: ...
    @property
    def routed_scale(self) -> float: ...
    @property
    def shared_experts(self) -> int: ...
    @property
    def sinkhorn_iterations(self) -> int: ...
    @property
    def streams(self) -> int: ...
    @property
    def vocab(self) -> int: ...
    @property
    def window(self) -> int: ...
    @property
    def yarn(self) -> bool: ...
    @property
    def yarn_beta_fast(self) -> float: ...
    @property
    def yarn_beta_slow(self) -> float: ...
    @property
    def yarn_factor(self) -> float: ...
    @property
    def yarn_original_context(self) -> int: ...

class Packing:
    """
    How a tensor lies in a packed file.
    """
    @property
    def bytes(self) -> int:
        """
        Of one packed matrix.
        """
    @property
    def count(self) -> int:
        """
        Matrices that it holds, which are packed apart.
        """
    @property
    def name(self) -> str: ...
    @property
    def type(self) -> int:
        """
        ggml's id of the type that its tiles are of.
        """

class SamplingPolicy:
    """
    What a request asks of the sampler; immutable.
    """
    def __init__(
        self,
        *,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        repetition_penalty: float = 1.0,
        presence_penalty: float = 0.0,
        frequency_penalty: float = 0.0,
        penalty_last_n: int = -1,
        logit_bias: collections.abc.Mapping[int, float] = {},
    ) -> None:
        """
        Raises RequestError naming the field that is out of range.
        """
    @property
    def frequency_penalty(self) -> float: ...
    @property
    def greedy(self) -> bool: ...
    @property
    def logit_bias(self) -> dict[int, float]: ...
    @property
    def min_p(self) -> float: ...
    @property
    def penalises(self) -> bool:
        """
        Whether the tokens before a row change its distribution.
        """
    @property
    def penalty_last_n(self) -> int: ...
    @property
    def presence_penalty(self) -> float: ...
    @property
    def repetition_penalty(self) -> float: ...
    @property
    def temperature(self) -> float: ...
    @property
    def temperature_only(self) -> bool:
        """
        Whether a temperature is all there is to it, or nothing but the arg max.
        """
    @property
    def top_k(self) -> int: ...
    @property
    def top_p(self) -> float: ...

class Rng:
    """
    Philox 4x32-10: the stream depends on (seed, draw number) only.
    """
    def __init__(self, seed: int, counter: int = 0) -> None: ...
    def uniform(self) -> float:
        """
        Uniform in [0, 1) with 53 bits.
        """
    @property
    def counter(self) -> int:
        """
        Draws made so far; Rng(seed, counter) continues from there.
        """
    @property
    def seed(self) -> int: ...

class Sampler:
    """
    Logits to distribution to token by one policy; one thread at a time.
    """
    def __init__(self, policy: SamplingPolicy) -> None: ...
    def distribution(
        self, logits: numpy.ndarray, history: numpy.ndarray = ..., ids: numpy.ndarray = ...
    ) -> numpy.typing.NDArray[numpy.float32]:
        """
        Probabilities [vocab] of float32 logits [vocab] after the whole policy; zero for removed tokens. The
        int32 history, oldest first, is what the penalties look at. With int32 ids [width], distinct, the logits
        are those of the listed tokens only. Raises RequestError when every token is removed, an id is outside
        the vocabulary or the ids do not fit the logits, BackendError when a logit is NaN or +inf.
        """
    def sample(self, logits: numpy.ndarray, history: numpy.ndarray, rng: Rng, ids: numpy.ndarray = ...) -> int:
        """
        One token of that distribution; greedy takes nothing from `rng`.
        """
    @property
    def policy(self) -> SamplingPolicy: ...

class Model:
    """
    A loaded target; shared by its sessions.
    """
    @staticmethod
    def load(
        path: str,
        *,
        device: str = "auto",
        split: collections.abc.Sequence[int] = [],
        cpu_moe: int = 0,
        threads: int | None = None,
        repack: bool = True,
        reserve: int = 0,
        progress: collections.abc.Callable[[float], None] | None = None,
    ) -> Model:
        """
        Maps and checks a target and puts its weights in place: layers over the devices, which commas
        part, as `split` says; routed experts of the first `cpu_moe` layers on the CPU, -1 for all.
        Weights are only repacked where `reserve` bytes of memory are left. progress(fraction) may be None.
        """
    @property
    def device(self) -> str: ...
    @property
    def device_map(self) -> str:
        """
        The devices with how many layers each has, and what stays on the CPU, for people.
        """
    @property
    def file(self) -> GgufFile: ...
    @property
    def fingerprint(self) -> int: ...
    @property
    def hyperparameters(self) -> Hyperparameters:
        """
        A copy, which does not keep the model in memory.
        """
    @property
    def nodes(self) -> int:
        """
        NUMA nodes with processors that this process may use.
        """
    @property
    def packed_bytes(self) -> int: ...
    @property
    def spread_over_nodes(self) -> bool: ...
    @property
    def threads(self) -> int: ...

class DeviceMemory:
    """
    Bytes that a target, its drafter and a session need on one device.
    """
    @property
    def available(self) -> int:
        """
        Bytes available now.
        """
    @property
    def device(self) -> str:
        """
        Name of the device.
        """
    @property
    def drafter(self) -> int:
        """
        Weights of the drafter.
        """
    @property
    def experts(self) -> int:
        """
        Routed experts of the target.
        """
    @property
    def host(self) -> bool:
        """
        Whether it is the CPU, which uses weights from the file's mapping.
        """
    @property
    def packed(self) -> int:
        """
        Copies of weights for the CPU's own kernels.
        """
    @property
    def scratch(self) -> int:
        """
        Memory in which the graphs of a session run.
        """
    @property
    def state(self) -> int:
        """
        Keys and rings of one session.
        """
    @property
    def weights(self) -> int:
        """
        Weights of the target without its routed experts.
        """

class DrafterHyperparameters:
    """
    The numbers that shape a DSpark drafter; read-only.
    """
    @property
    def block(self) -> int:
        """
        Proposals of one draft.
        """
    @property
    def confidence(self) -> bool:
        """
        Whether it has a confidence head.
        """
    @property
    def confidence_markov(self) -> bool:
        """
        Whether that also reads the previous token's Markov row.
        """
    @property
    def contract(self) -> str:
        """
        How the file is stored: dflash, lucebox, ds4, dspark-only or relayout.
        """
    @property
    def from_anchor(self) -> bool:
        """
        Whether the anchor's own row predicts.
        """
    @property
    def noise(self) -> int:
        """
        Id that fills the block after the anchor.
        """
    @property
    def rank(self) -> int:
        """
        Of the Markov head; 0 is none.
        """
    @property
    def stages(self) -> Hyperparameters:
        """
        The draft stages as layers.
        """
    @property
    def taps(self) -> list[int]:
        """
        Target layers, counted from 0, whose output it reads.
        """

class Drafter:
    """
    A loaded DSpark drafter, checked against its target.
    """
    @staticmethod
    def load(path: str, target: Model, *, progress: collections.abc.Callable[[float], None] | None = None) -> Drafter:
        """
        Maps and checks a drafter and puts its weights on the target's device. Raises FormatError, or
        PairError with everything that does not fit. progress(fraction) may be None.
        """
    @property
    def block(self) -> int: ...
    @property
    def bytes(self) -> int:
        """
        Size of the weights in memory.
        """
    @property
    def confidence(self) -> bool: ...
    @property
    def contract(self) -> str: ...
    @property
    def file(self) -> GgufFile: ...
    @property
    def fingerprint(self) -> int: ...
    @property
    def hyperparameters(self) -> DrafterHyperparameters: ...
    @property
    def noise(self) -> int: ...
    @property
    def rank(self) -> int: ...
    @property
    def stages(self) -> int: ...
    @property
    def taps(self) -> list[int]: ...

class SavedSession:
    """
    The beginning of a saved session.
    """
    @property
    def checkpoints(self) -> list[int]:
        """
        Positions of the checkpoints, ascending.
        """
    @property
    def context(self) -> int:
        """
        Positions that the session could hold.
        """
    @property
    def drafter(self) -> int:
        """
        Fingerprint of the drafter; 0 without one.
        """
    @property
    def model(self) -> int:
        """
        Fingerprint of the model.
        """
    @property
    def tokens(self) -> numpy.typing.NDArray[numpy.int32]:
        """
        Ids in the state, int32 [n].
        """

class DraftBlock:
    """
    The proposals of one block; row j is for position 1 + j after the anchor's.
    """
    @property
    def confidence(self) -> typing.Any:
        """
        P(accepted | those before are), float32 [block]; None without a confidence head.
        """
    @property
    def device_draft(self) -> int:
        """
        Number of a draft whose q is on the device, until the next draft; 0 where it is not.
        """
    @property
    def q_ids(self) -> typing.Any:
        """
        Ids that q is over, int32 [block, candidates]; None for the whole vocabulary.
        """
    @property
    def q_probs(self) -> typing.Any:
        """
        The distribution of the draws, float32 [block, candidates] or [block, vocab]; None for arg max proposals,
        and for a q that stays on the device.
        """
    @property
    def tokens(self) -> typing.Any:
        """
        Proposals, int32 [block].
        """

class NodeTime:
    """
    The time of one node of a forward that ran by itself.
    """
    @property
    def experts(self) -> int:
        """
        Experts that it reads; 0 for a node that does not choose among experts.
        """
    @property
    def leaves(self) -> list[str]:
        """
        Names of what it reads that no node made: weights, state, inputs.
        """
    @property
    def op(self) -> str:
        """
        ggml's name of the operation.
        """
    @property
    def seconds(self) -> float:
        """
        Seconds that it took; 0 for a view.
        """
    @property
    def sources(self) -> list[int]:
        """
        Indices of the nodes it reads.
        """

class GraphStatistics:
    """
    Statistics of one graph that a session keeps.
    """
    @property
    def addresses(self) -> int:
        """
        A hash of the addresses of all nodes, which never changes.
        """
    @property
    def bytes(self) -> int:
        """
        Memory that it runs in, on all devices.
        """
    @property
    def cpu_ops(self) -> dict[str, int]:
        """
        Nodes that the CPU computes beside other devices, by ggml's names.
        """
    @property
    def devices(self) -> dict[str, int]:
        """
        Nodes that each device computes.
        """
    @property
    def kind(self) -> str:
        """
        "forward" or "draft".
        """
    @property
    def nodes(self) -> int:
        """
        Nodes, views not counted.
        """
    @property
    def rows(self) -> int:
        """
        Rows that it computes.
        """
    @property
    def splits(self) -> int:
        """
        Runs of nodes on one device; 1 for a graph that one device computes.
        """

class TrafficCount:
    """
    Bytes between host and device so far.
    """
    @property
    def to_device(self) -> int:
        """
        Inputs of graphs.
        """
    @property
    def to_host(self) -> int:
        """
        What was read of the outputs of graphs.
        """

class DraftTrace:
    """
    Intermediate results of a draft.
    """
    @property
    def base(self) -> typing.Any:
        """
        Logits without the Markov bias, float32 [block, vocab].
        """
    @property
    def hidden(self) -> typing.Any:
        """
        Collapsed streams before the last norm, float32 [block, hidden].
        """

class SessionDiagnostics:
    """
    What a session did and keeps, for tests and benchmarks.
    """
    def draft_trace(self) -> DraftTrace:
        """
        What the latest draft computed on the way. Raises RequestError when nothing has been drafted yet.
        """
    def graphs(self) -> list[GraphStatistics]:
        """
        The graphs that the session keeps, the most recently used first.
        """
    def node_times(self, tokens: typing.Annotated[numpy.typing.ArrayLike, numpy.int32]) -> list[NodeTime]:
        """
        Runs the nodes of a verify one by one, in order, each timed with the wait for it. Drops the rows, and
        those verified before.
        """
    @property
    def traffic(self) -> TrafficCount:
        """
        Bytes between host and device so far. What the scheduler copies for nodes that the
        device cannot compute is not counted.
        """

class Session:
    """
    The native state of one conversation.
    """
    @staticmethod
    def load(model: Model, path: str, *, drafter: Drafter | None = None, context: int | None = None) -> Session: ...
    def __init__(
        self, model: Model, *, context: int, kv_dtype: str = "f16", drafter: Drafter | None = None
    ) -> None: ...
    def accept(self, *, temperature: float, rng: Rng | None = None, device_draft: int = 0) -> tuple[int, int]:
        """
        Accepts the verified proposals on the device, one by one: how many are accepted, and the token after
        them. `device_draft` is the draft they were drawn in; 0: q is 1 at each.
        """
    def cancel(self) -> None: ...
    def clear_cancel(self) -> None: ...
    def commit(self, rows: int) -> None:
        """
        Puts the first `rows` verified rows into the state.
        """
    def copy_from(
        self, source: Session, position: int, progress: collections.abc.Callable[[int, int], None] | None = None
    ) -> None:
        """
        Becomes what another session was at a position. After a cancel it is empty.
        """
    def device_q(self, device_draft: int) -> typing.Any:
        """
        q float32 [block, vocab] of a draft on the device; RequestError after the next draft.
        """
    def draft(
        self,
        anchor: int,
        *,
        draft_vocab: int = 0,
        sampler: Sampler | None = None,
        rng: Rng | None = None,
        read_q: bool = True,
    ) -> DraftBlock:
        """
        Proposes a block after `anchor`. A sampler draws from q, with `rng`; without one the proposals are the
        arg max. `draft_vocab` is the number of candidates at each position, 0 for the whole vocabulary. A q
        that the device's own kernels drew from stays there without `read_q`.
        """
    def evaluate(
        self,
        tokens: typing.Annotated[numpy.typing.ArrayLike, numpy.int32],
        progress: collections.abc.Callable[[int, int], None] | None = None,
    ) -> numpy.typing.NDArray[numpy.float32]:
        """
        Extends the state; returns the logits of every row, float32 [n, vocab].
        """
    def kernel_choice(self) -> str:
        """
        The implementation of each op on the device of the head and the drafter, a line each: "attention: own
        (avx2)", "attention: ggml".
        """
    def logits(self) -> numpy.typing.NDArray[numpy.float32]:
        """
        The logits of the frontier, float32 [vocab].
        """
    def ops(self) -> dict[str, str]:
        """
        Which implementation computes what a device may have kernels of ds4's for: "own (CUDA)", "ggml",
        "host", by op.
        """
    def prefill(
        self,
        tokens: typing.Annotated[numpy.typing.ArrayLike, numpy.int32],
        progress: collections.abc.Callable[[int, int], None] | None = None,
        *,
        checkpoints: collections.abc.Sequence[int] = [],
    ) -> None: ...
    def resume_point(self, position: int) -> int:
        """
        The position from which a rewind to `position` evaluates again.
        """
    def rewind(self, position: int, progress: collections.abc.Callable[[int, int], None] | None = None) -> None: ...
    def sample(self, sampler: Sampler, rng: Rng) -> int: ...
    def save(self, path: str, *, checkpoints: collections.abc.Sequence[int] = []) -> None: ...
    def verify(
        self, tokens: typing.Annotated[numpy.typing.ArrayLike, numpy.int32]
    ) -> numpy.typing.NDArray[numpy.float32]:
        """
        Logits float32 [rows, vocab] of 1 to 16 rows at the frontier, which stays; a view that is valid until
        the session's next call.
        """
    def verify_on_device(self, tokens: typing.Annotated[numpy.typing.ArrayLike, numpy.int32]) -> None:
        """
        Verifies as verify() does, but leaves the logits on the device, for accept().
        """
    @property
    def accepts_on_device(self) -> bool:
        """
        Whether the device has kernels that accept proposals.
        """
    @property
    def checkpoints(self) -> list[int]:
        """
        Positions of the checkpoints, ascending.
        """
    @property
    def context(self) -> int: ...
    @property
    def diagnostics(self) -> SessionDiagnostics:
        """
        What the session did and keeps, for tests and benchmarks.
        """
    @property
    def drafts_on_device(self) -> bool:
        """
        Whether the device's own kernels draw whole vocabularies.
        """
    @property
    def kv_dtype(self) -> str: ...
    @property
    def position(self) -> int: ...
    @property
    def tokens(self) -> numpy.typing.NDArray[numpy.int32]:
        """
        A copy of the ids in the state, int32 [position].
        """

def accept(
    rule: str,
    sampler: Sampler,
    logits: numpy.ndarray,
    tokens: numpy.ndarray,
    q: numpy.ndarray,
    ids: numpy.ndarray | None,
    history: numpy.ndarray,
    rng: Rng,
) -> tuple[int, int]:
    """
    How many of the k proposals are accepted, and the token after them. The rule is "token", "match" or
    "block"; float32 logits [k + 1, vocab], int32 tokens [k], float32 q [k, vocab], or [k, candidates] with
    int32 ids [k, candidates]; int32 history up to and including the anchor. Raises RequestError for what does
    not fit, BackendError for NaN logits.
    """

def available_memory(root: str = "/") -> int:
    """
    Bytes that can be taken, as far as the system and the control groups say. `root` stands before /proc and /sys.
    """

def backends() -> list:
    """
    What ggml offers in this build: backends with their name, features and devices; bytes of memory.
    """

def check_weights(file: GgufFile, hyperparameters: Hyperparameters) -> None:
    """
    Raises FormatError for the first tensor that is missing or has the wrong shape, type or ids.
    """

def commit() -> str:
    """
    The commit it was built from, or "unknown".
    """

def cpu_kernels() -> list[str]:
    """
    The CPU kernels that this processor runs, the best first, which is the one that computes.
    """

def decode_fp4(codes: numpy.ndarray, scales: numpy.ndarray) -> numpy.typing.NDArray[numpy.float32]:
    """
    Values [32 n] of E2M1 codes [16 n] (uint8), the low half first, under E8M0 scales [n] up to code 252.
    """

def decode_fp8(codes: numpy.ndarray, scales: numpy.ndarray) -> numpy.typing.NDArray[numpy.float32]:
    """
    Values [rows, columns] of E4M3 codes (uint8), scales float32 [rows, ceil(columns / 128)]; NaN where a code means it.
    """

def default_threads() -> int:
    """
    Cores that affinity and the control groups' quota leave to this process; at least 1.
    """

def draw(weights: numpy.ndarray, u: float) -> int:
    """
    Index drawn with probability weights[i] / sum(weights) for u in [0, 1); never one of weight zero.
    """

def exit_on_abort(code: int) -> None:
    """
    Where ggml gives up, such as on a device that is lost, the process ends with this exit code, not SIGABRT.
    """

def fp4_to_mxfp4(codes: numpy.ndarray, scales: numpy.ndarray) -> numpy.typing.NDArray[numpy.uint8]:
    """
    The same codes and scales as bytes [17 n] of ggml's MXFP4.
    """

def greatest_magnitude(values: numpy.ndarray) -> float:
    """
    Of values [rows, columns]; infinite or NaN as soon as one is.
    """

def load_backends(directory: str) -> None:
    """
    Loads ggml's backend libraries from a directory.
    """

def logprobs(logits: numpy.ndarray, tokens: numpy.ndarray, top: int) -> list:
    """
    Natural logarithms of the softmax of float32 logits [at least tokens, vocab], a row for each of int32
    tokens: (token, logprob, the `top` likeliest as (token, logprob), descending). Raises RequestError for what
    does not fit, BackendError for NaN and +inf logits.
    """

def memory_by_device(
    target: GgufFile,
    drafter: GgufFile | None = None,
    *,
    context: int,
    kv_dtype: str = "f16",
    device: str = "auto",
    split: collections.abc.Sequence[int] = [],
    cpu_moe: int = 0,
    repack: bool = True,
) -> list[DeviceMemory]:
    """
    What Model.load, Drafter.load (None: no drafter) and a session would need on each device. Raises what they
    raise for files, devices and numbers.
    """

def pack_rows(rows: numpy.ndarray, type: int, packed: int, columns: int) -> numpy.typing.NDArray[numpy.uint8]:
    """
    Bytes of the tiles (16 rows each, the last one filled with zeros) of rows of a type, packed as the same type
    or as F32; rows are uint8, types ggml's ids.
    """

def packing(file: GgufFile, *, drafter: bool) -> list[Packing]:
    """
    The tensors that are packed for the CPU's kernels, of a target or of a drafter; their values are not looked
    at. Raises FormatError where the file is not sound, or packed otherwise.
    """

def philox4x32(
    counter: typing.Annotated[collections.abc.Sequence[int], "FixedSize(4)"],
    key: typing.Annotated[collections.abc.Sequence[int], "FixedSize(2)"],
) -> typing.Annotated[list[int], "FixedSize(4)"]:
    """
    The block function under Rng: four words of counter and two of key to four random words.
    """

def read_drafter(file: GgufFile, target: Hyperparameters | None = None) -> DrafterHyperparameters:
    """
    Checks a drafter's file without loading it. Raises FormatError, or PairError with everything that does not
    fit the target; without a target, numbers that the file leaves to it are 0.
    """

def read_hyperparameters(file: GgufFile) -> Hyperparameters:
    """
    Raises FormatError where the file is not a DS4 target, saying what it is.
    """

def read_saved_session(path: str) -> SavedSession:
    """
    Reads the beginning of a saved session; only loading it tells whether the rest is whole. Raises
    FormatError.
    """

def serve_rpc(endpoint: str, device: str = "auto", threads: int = 1) -> None:
    """
    Serves a device of this machine at "HOST:PORT" by ggml's RPC protocol, one client at a time, without
    authentication. Does not return; raises BackendError when the address cannot be served at.
    """

CSA_RATIO: int = 4
DEFAULT_CONTEXT: int = 8192
HCA_RATIO: int = 128
MAX_ROWS: int = 16
PACKED_LAYOUT: int = 1
PACKED_TILE: int = 16
