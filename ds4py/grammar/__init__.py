"""Generations that are held to a grammar: JSON, a schema, a regular expression, calls of tools."""

from ds4py.grammar.base import Constraint, Matcher
from ds4py.grammar.calls import tool_calls
from ds4py.grammar.guidance import json_object, json_schema, lark, regex
from ds4py.grammar.thinking import AfterThinking

__all__ = ["AfterThinking", "Constraint", "Matcher", "json_object", "json_schema", "lark", "regex", "tool_calls"]
