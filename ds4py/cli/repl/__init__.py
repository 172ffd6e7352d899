"""Holds the parts of `ds4py chat`: the conversation, its commands, the line editor and the printer."""
