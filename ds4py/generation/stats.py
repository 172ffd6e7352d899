"""What a request took."""

from __future__ import annotations

from dataclasses import dataclass, field

from ds4py.speculative import Speculation


@dataclass
class Stats:
    """Counts and seconds of the latest request."""

    seed: int | None = None
    prompt_tokens: int = 0
    prompt_seconds: float = 0.0
    generated_tokens: int = 0
    generate_seconds: float = 0.0
    speculation: Speculation = field(default_factory=Speculation)

    @property
    def prompt_tokens_per_second(self) -> float:
        """0 when there was no prompt."""
        return self.prompt_tokens / self.prompt_seconds if self.prompt_seconds else 0.0

    @property
    def tokens_per_second(self) -> float:
        """Generated tokens a second, the prompt's time left out; 0 when nothing was generated."""
        return self.generated_tokens / self.generate_seconds if self.generate_seconds else 0.0
