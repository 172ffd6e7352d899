"""Uses OpenAI's Python client with `ds4py serve`: start the server, then run `openai_client.py [URL]`."""

import sys

from openai import OpenAI

client = OpenAI(base_url=sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080/v1", api_key="none")
model = client.models.list().data[0].id
stream = client.chat.completions.create(
    model=model, messages=[{"role": "user", "content": "Write a JSON object."}], max_tokens=32, seed=1, stream=True
)
for chunk in stream:
    print(chunk.choices[0].delta.content or "" if chunk.choices else "", end="", flush=True)
print()
