"""Finds what a tensor is for from its name. `ds4py inspect` adds tensors up by these roles."""

import re

ROLES: tuple[tuple[str, str], ...] = (
    ("embedding", r"token_embd\."),
    ("output head", r"(output|output_norm|dspark\.norm|mtp\.\d+\.norm)\."),
    ("hyper-connections", r".*\b(output_)?hc_"),
    ("drafter head", r"(fc|enc\.output_norm|dflash)\."),
    ("drafter head", r".*\b(main_proj|main_norm|markov_\w+|conf_proj|confidence_head)\."),
    ("MTP block", r".*\b(nextn|e_proj|h_proj|enorm|hnorm)\b"),
    ("norms", r".*norm\."),
    ("indexer", r".*\bindexer[._]"),
    ("compressor", r".*\battn_compressor_"),
    ("attention", r".*\battn_"),
    ("router", r".*\b(ffn_gate_inp|exp_probs_b|ffn_gate_tid2eid)\b"),
    ("shared expert", r".*\bffn_\w+_shexp\."),
    ("routed experts", r".*\bffn_\w+_exps\."),
)
"""Pairs of a role and a pattern for the beginning of a name. The first pattern that fits decides."""


def role(name: str) -> str:
    """Returns the role of the tensor `name`, or `other` for a name that no DS4 file has."""
    for found, pattern in ROLES:
        if re.match(pattern, name):
            return found
    return "other"
