"""Asks questions with the openai package, as its users do.

In: the address of a server, and on standard input a JSON list of questions (model, prompt, max_tokens, ignore_eos, chat, stream). Out: a JSON list
in the same order, with all that a client sees of each answer: text, reason of its end, count of tokens, name of the model. A
request that fails is reported as {"error": ...}.
"""
import json
import sys
from concurrent.futures import ThreadPoolExecutor

import openai

AT_A_TIME = 12


def ask(client, q):
    arguments = {"model": q["model"], "max_tokens": q["max_tokens"], "stream": q["stream"], "temperature": 0,
                 "extra_body": {"ignore_eos": q["ignore_eos"]}}
    if q["stream"]:
        arguments["stream_options"] = {"include_usage": True}
    if q["chat"]:
        answer = client.chat.completions.create(messages=[{"role": "user", "content": q["prompt"]}], **arguments)
    else:
        answer = client.completions.create(prompt=q["prompt"], **arguments)
    seen = {"text": "", "reason": None, "tokens": None, "models": set()}
    for part in answer if q["stream"] else [answer]:
        seen["models"].add(part.model)
        if part.usage:
            seen["tokens"] = [part.usage.prompt_tokens, part.usage.completion_tokens]
        for choice in part.choices:
            seen["text"] += (choice.delta if q["stream"] else choice.message).content if q["chat"] else choice.text
            seen["reason"] = choice.finish_reason or seen["reason"]
    return {**seen, "models": sorted(seen["models"])}


def outcome(client, q):
    try:
        return ask(client, q)
    except openai.OpenAIError as error:
        return {"error": f"{type(error).__name__}: {error}"}


def main():
    # The package tries a failed request twice more by itself, which would hide failures.
    client = openai.OpenAI(base_url=sys.argv[1] + "/v1", api_key="none", max_retries=0, timeout=300)
    questions = json.load(sys.stdin)
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        json.dump(list(pool.map(lambda q: outcome(client, q), questions)), sys.stdout)


if __name__ == "__main__":
    main()
