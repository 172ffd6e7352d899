"""The server's metrics, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest

from ds4py.constants import MAX_DRAFT_LENGTH

if TYPE_CHECKING:
    from ds4py.generation import ChatStream

disable_created_metrics()  # type: ignore[no-untyped-call]

FIRST_TOKEN_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 60, 150, 600)


class Metrics:
    """The counters of one server, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"ds4py_{name}", text, labels, registry=self.registry)

        self.requests = counter("requests", "Requests answered; status 499 is a client that left", "endpoint", "status")
        self.prompt_tokens = counter("prompt_tokens", "Tokens of prompts, cached ones included")
        self.cached_tokens = counter("cached_tokens", "Tokens of prompts that were in a state already")
        self.generated_tokens = counter("generated_tokens", "Tokens generated")
        self.cache = counter("prompt_cache", "Prompts by whether a beginning of theirs was in a state", "result")
        self.drafted = counter("drafted_tokens", "Proposals that were verified")
        self.accepted = counter("accepted_tokens", "Proposals that were accepted")
        self.draft_lengths = Histogram(
            "ds4py_cycle_width",
            "Proposals verified a cycle",
            buckets=range(MAX_DRAFT_LENGTH + 1),
            registry=self.registry,
        )
        self.first_token = Histogram(
            "ds4py_time_to_first_token_seconds",
            "From a request's arrival to its first token, waiting included",
            buckets=FIRST_TOKEN_BUCKETS,
            registry=self.registry,
        )

    def watch(self, waiting: Callable[[], int], running: Callable[[], int]) -> None:
        """Adds gauges of the queue, which call these functions for their values."""
        Gauge("ds4py_queue_length", "Requests that wait for a turn", registry=self.registry).set_function(waiting)
        Gauge("ds4py_running", "Requests that are computed", registry=self.registry).set_function(running)

    def count(self, stream: ChatStream) -> None:
        """Counts an answer that has ended, complete or not. May be called from any thread."""
        usage = stream.usage
        self.prompt_tokens.inc(usage.prompt_tokens)
        self.cached_tokens.inc(usage.cached_tokens)
        self.generated_tokens.inc(usage.completion_tokens)
        self.cache.labels("hit" if usage.cached_tokens else "miss").inc()
        speculation = stream.stats.speculation
        self.drafted.inc(speculation.drafted)
        self.accepted.inc(speculation.accepted)
        for cycle in speculation.cycles:
            self.draft_lengths.observe(cycle.draft_length)

    def text(self) -> bytes:
        """Returns all metrics in Prometheus' text format."""
        return generate_latest(self.registry)
