"""Token counts and times of one request."""

from __future__ import annotations

from dataclasses import dataclass, field

from ds4py.speculative import Speculation


@dataclass
class Stats:
    """Counts and times of one request.

    Attributes:
        seed: the seed of the request's random draws; None before the first request.
        prompt_tokens: tokens of the prompt that were evaluated.
        prompt_seconds: seconds that the prompt took.
        generated_tokens: tokens in the pieces so far.
        generate_seconds: seconds of the cycles that generated these tokens.
        speculation: statistics of speculation, with every cycle.
    """

    seed: int | None = None
    prompt_tokens: int = 0
    prompt_seconds: float = 0.0
    generated_tokens: int = 0
    generate_seconds: float = 0.0
    speculation: Speculation = field(default_factory=Speculation)

    @property
    def prompt_tokens_per_second(self) -> float:
        """Prompt tokens a second; 0 without a prompt."""
        return self.prompt_tokens / self.prompt_seconds if self.prompt_seconds else 0.0

    @property
    def tokens_per_second(self) -> float:
        """Generated tokens a second, without the prompt's time; 0 if nothing was generated."""
        return self.generated_tokens / self.generate_seconds if self.generate_seconds else 0.0
