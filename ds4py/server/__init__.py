"""`ds4py serve`: one engine behind OpenAI's and Anthropic's HTTP APIs. Needs the extra `server`."""

from ds4py.deprecated import renamed
from ds4py.server.options import ServerOptions

__all__ = ["ServerOptions"]

__getattr__ = renamed(__name__, {"Options": "ServerOptions"})
