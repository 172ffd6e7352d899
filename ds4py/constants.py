"""Numbers of the architecture and of the native core that several parts of ds4py and the converter use.

Sections 1.2 and 2.5 of docs/model.md define the compression ratios.
"""

from ds4py import _native

CSA_RATIO: int = _native.CSA_RATIO
"""Positions that one compressed row stands for in a layer of compressed sparse attention (CSA)."""

HCA_RATIO: int = _native.HCA_RATIO
"""Positions that one compressed row stands for in a layer of heavily compressed attention (HCA)."""

DEFAULT_CONTEXT: int = _native.DEFAULT_CONTEXT
"""Positions of a session whose context nobody chose, unless the model was trained for fewer."""

MAX_ROWS: int = _native.MAX_ROWS
"""Rows of one forward that can still be dropped: the slack of a session's rings. A verify has at most so many rows."""

MAX_DRAFT_LENGTH = MAX_ROWS - 1
"""Proposals that one verify can hold: the anchor is the first of its rows."""
