"""One request to an OpenAI server, whole or streamed.

In: a port, a model's name, a prompt and a number of tokens. Out: the text. Fails: Lost, with the server's reason, if it gave no or partial text.
"""

import json
import urllib.error

from stream import ask


class Lost(Exception):
    """The server said that there is no answer."""


def answer(port, model, request, streamed):
    body = {"model": model, "prompt": request["prompt"], "max_tokens": request["max_tokens"], "temperature": 0, "ignore_eos": True, "stream": streamed}
    try:
        with ask(port, "/v1/completions", body) as got:
            return text_of(got) if streamed else json.load(got)["choices"][0]["text"]
    except urllib.error.HTTPError as e:
        raise Lost(f"{e.code} {e.read().decode()}") from None


def text_of(events):
    """The server's last event is [DONE], or an error."""
    text, done = "", False
    for line in events:
        if line.startswith(b"data: [DONE]"):
            done = True
        elif line.startswith(b"data: "):
            event = json.loads(line[6:])
            if "error" in event:
                raise Lost(json.dumps(event))
            text += event["choices"][0]["text"]
    if not done:
        raise Lost("the stream has no end")
    return text
