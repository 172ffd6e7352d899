"""A chat in twenty lines: `chat_20_lines.py [MODEL [DRAFTER]]`. Without a model it takes the embedded pair."""

import sys

import ds4py
from ds4py.chat import Message

with ds4py.Engine(*sys.argv[1:2], drafter=sys.argv[2] if len(sys.argv) > 2 else None) as engine:
    messages: list[Message] = []
    for line in iter(lambda: input("> "), ""):
        messages.append(Message("user", line))
        with engine.chat(messages, max_tokens=200, sampling=ds4py.Sampling(seed=1)) as stream:
            for piece in stream:
                print(*(event.text for event in piece.events), sep="", end="", flush=True)
        print(f"\n[{stream.usage}]")
        if stream.message:
            messages.append(stream.message)
