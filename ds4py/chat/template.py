"""The chat template that a model's file carries, asked for the words that are data of the checkpoint."""

from collections.abc import Collection
from functools import cached_property
from typing import Final

from ds4py.chat.dsml import to_json
from ds4py.chat.markers import ALL, BOS, END_THINK, THINK
from ds4py.errors import FormatError, RequestError

KEY: Final = "tokenizer.chat_template"

EFFORTS: Final = ("high", "max")

ADVICE: Final = "convert the file again, or ask for neither effort nor tools"

MARKERS_OF_TOOLS: Final = (THINK, END_THINK)

PROBES: Final = tuple({"type": "function", "function": {"name": name, "parameters": {}}} for name in ("one", "two"))
"""Two sample tools, to find out what a template writes for tools."""


class ChatTemplate:
    """The Jinja source of `tokenizer.chat_template`.

    Checkpoints differ in the paragraph that asks for more effort: the first ones have one for `max`
    and treat `high` as none, later ones have one for each. The paragraph is what the template writes
    more when effort is asked for than when it is not, whatever names it uses inside. The words that declare tools
    are found in the same way.
    """

    def __init__(self, source: str) -> None:
        self._source = source

    def effort(self, level: str) -> str:
        """Returns the paragraph for an effort, empty where the checkpoint treats that level as none.

        Raises RequestError for a level other than "high" and "max" and where the template knows no
        effort at all, FormatError for a template that fails, or that does not begin with the paragraph.
        """
        check_effort(level)
        if not self._paragraphs[level] and not self._paragraphs["max"]:
            raise RequestError(f"effort {level!r}: {KEY} of this file has no words for an effort; give none")
        return self._paragraphs[level]

    def tools(self) -> tuple[str, str] | None:
        """Returns the words before and after the lines that declare tools, or None where the template knows no tools.

        Raises FormatError for a template that fails, or that declares them in some other way.
        """
        plain, asked = self._render(), self._render(tools=PROBES)
        if plain == asked:
            return None
        words = added(plain, asked, "a list of tools", MARKERS_OF_TOOLS)
        before, lines, after = words.partition("\n".join(to_json(probe["function"]) for probe in PROBES))
        if not lines:
            raise FormatError(f"{KEY}: tools are not declared as one line of JSON each; {ADVICE}")
        return before, after

    @cached_property
    def _paragraphs(self) -> dict[str, str]:
        plain = self._render()
        return {level: added(plain, self._render(reasoning_effort=level), f"effort {level!r}") for level in EFFORTS}

    def _render(self, **asked: object) -> str:
        """Renders a prompt with thinking on and one user message."""
        from ds4py.chat.jinja import TemplateFailure, render  # long to import, and most programs ask no template

        given = {"bos_token": BOS, "thinking": True, "enable_thinking": True, "add_generation_prompt": True, **asked}
        try:
            return render(self._source, messages=[{"role": "user", "content": "Hi"}], **given)
        except TemplateFailure as error:
            raise FormatError(f"{KEY}: the template fails: {error}; {ADVICE}") from error


def check_effort(level: str) -> None:
    """Raises RequestError for a level that does not exist."""
    if level not in EFFORTS:
        raise RequestError(f"effort: found {level!r}, wanted {' or '.join(map(repr, EFFORTS))}, or none")


def added(plain: str, asked: str, what: str, allowed: Collection[str] = ()) -> str:
    """Returns the text that `asked` has after the begin-of-sequence token and `plain` lacks. Raises FormatError."""
    rest = plain.removeprefix(BOS)
    start = len(plain) - len(rest)
    if asked[:start] != plain[:start] or not asked[start:].endswith(rest):
        raise FormatError(f"{KEY}: {what} changes more than the beginning of the prompt; {ADVICE}")
    paragraph = asked[start : len(asked) - len(rest)]
    if any(marker in paragraph for marker in ALL if marker not in allowed):
        raise FormatError(f"{KEY}: the words for {what} hold a marker of the layout; {ADVICE}")
    return paragraph
