"""`ds4py serve`: one engine behind OpenAI's and Anthropic's HTTP APIs. Needs the extra `server`."""

from ds4py.server.options import Options

__all__ = ["Options"]
