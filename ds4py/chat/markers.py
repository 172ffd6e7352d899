"""The tokens that structure a conversation."""

from typing import Final

BOS: Final = "<｜begin▁of▁sentence｜>"
EOS: Final = "<｜end▁of▁sentence｜>"
USER: Final = "<｜User｜>"
ASSISTANT: Final = "<｜Assistant｜>"
REMINDER: Final = "<｜latest_reminder｜>"
THINK: Final = "<think>"
END_THINK: Final = "</think>"

ALL: Final = (BOS, EOS, USER, ASSISTANT, REMINDER, THINK, END_THINK)

DSML: Final = "｜DSML｜"
"""The marker in the tags of tool calls, after their `<` or `</`."""
