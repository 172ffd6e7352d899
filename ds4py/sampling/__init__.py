"""The sampling policy of a request, and the log probabilities of its tokens."""

from ds4py.sampling.logprobs import TokenLogprobs
from ds4py.sampling.policy import AnySampling, Sampling, native_sampler

__all__ = ["AnySampling", "Sampling", "TokenLogprobs", "native_sampler"]
