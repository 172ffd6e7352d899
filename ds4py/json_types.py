"""The type of a JSON object."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
"""A JSON object: request and answer bodies, reports, schemas and the arguments of tool calls."""
