"""Resizes the KV cache of a `vllm serve` over HTTP while it streams answers.

    endpoint.py MODEL PORT -- COMMAND

In: a folder of checkpoint.py, the port that COMMAND serves on. Out: a line with the counts; the server has ended. Fails: exit code 1 if the server ends early, a
token is not transformers', a size is not as asked, an invalid size is not refused, or /metrics has other numbers.
"""

import json
import os
import re
import subprocess
import sys
import urllib.error
from concurrent import futures

from stream import ask, ready, stream

ROUNDS = 6


def call(port, size=None):
    """The status and the answer."""
    try:
        with ask(port, "/kv_cache") if size is None else ask(port, f"/kv_cache?bytes={size}", {}) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as e:
        return e.code, json.load(e)


def demand(true, *what):
    if not true:
        sys.exit(f"endpoint: {what}")


def measured(port):
    with ask(port, "/metrics") as answer:
        return {name: float(value) for name, value in re.findall(r"^medusa_kv_(\w+) (\S+)$", answer.read().decode(), re.M)}


def resizes(port, first):
    """Small and large by turns."""
    least, most, page = first["least_bytes"], first["range_bytes"], first["page_bytes"]
    for size in [least, most - page // 2] * (ROUNDS // 2):
        status, now = call(port, size)
        demand(status == 200 and now["mapped_bytes"] <= size < now["mapped_bytes"] + page, size, status, now)
        told = measured(port)
        demand(told == {name: now[name] for name in ("range_bytes", "least_bytes", "mapped_bytes", "blocks")}, told, now)
    for wrong in least - 1, most + 1, "many", "-1", 10**30:
        status, refused = call(port, wrong)
        demand(status == 400 and refused["error"]["message"].startswith("resize KV cache: "), wrong, status, refused)
    demand(call(port) == (200, now), now, call(port))


def main():
    model, port, separator, *command = sys.argv[1:]
    assert separator == "--", sys.argv
    with open(os.path.join(model, "expected.json"), encoding="utf-8") as f:
        cases = json.load(f)
    server = subprocess.Popen(command, stdout=sys.stderr)
    try:
        ready(port, server)
        status, first = call(port)
        demand(status == 200, status, first)
        with futures.ThreadPoolExecutor(2 * len(cases) + 1) as pool:
            answers = [pool.submit(stream, port, model, case) for case in cases * 2]
            resized = pool.submit(resizes, port, first)
            wrong = sum(a.result() != c["tokens"] for a, c in zip(answers, cases * 2))
            resized.result()
    finally:
        server.terminate()
        server.wait(120)
    demand(not wrong, wrong, "answers are wrong")
    print(f"{ROUNDS} resizes over HTTP, {2 * len(cases)} streamed answers, 0 wrong, 0 lost")


if __name__ == "__main__":
    main()
