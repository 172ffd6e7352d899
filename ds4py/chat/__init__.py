"""Conversations as the prompts that DeepSeek-V4 was trained on, and its answers taken apart."""

from ds4py.chat.encode import encode_chat, encode_turn
from ds4py.chat.events import Content, Event, Reasoning, ToolCallArguments, ToolCallEnd, ToolCallStart, message_of
from ds4py.chat.layout import render
from ds4py.chat.messages import Message, ToolCall
from ds4py.chat.reply import ReplyParser, parse_reply
from ds4py.chat.segments import Segment
from ds4py.chat.template import ChatTemplate

__all__ = [
    "ChatTemplate",
    "Content",
    "Event",
    "Message",
    "Reasoning",
    "ReplyParser",
    "Segment",
    "ToolCall",
    "ToolCallArguments",
    "ToolCallEnd",
    "ToolCallStart",
    "encode_chat",
    "encode_turn",
    "message_of",
    "parse_reply",
    "render",
]
