"""The sampling policy of a request, and the log probabilities of its tokens."""

from ds4py.sampling.logprobs import TokenLogprobs
from ds4py.sampling.policy import Sampling

__all__ = ["Sampling", "TokenLogprobs"]
