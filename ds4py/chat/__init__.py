"""Conversations as the prompts that DeepSeek-V4 was trained on."""

from ds4py.chat.encode import encode_chat
from ds4py.chat.layout import Segment, render
from ds4py.chat.messages import Message
from ds4py.chat.template import ChatTemplate

__all__ = ["ChatTemplate", "Message", "Segment", "encode_chat", "render"]
