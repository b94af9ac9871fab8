"""Streams completions from `vllm serve`.

    stream.py MODEL PORT -- COMMAND

In: a folder of checkpoint.py, the port that COMMAND serves on. Out: a line of JSON with the tokens of the folder's requests, which are sent all at once; the
server has ended. Fails: exit code 1 if the server ends early or an answer is no stream of one token after another.
"""

import json
import os
import subprocess
import sys
import time
import urllib.request
from concurrent import futures

SECONDS = 1200  # until the server is ready, and for each answer


def ask(port, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, {"Content-Type": "application/json"})
    return urllib.request.urlopen(request, timeout=SECONDS)


def ready(port, server):
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        try:
            return ask(port, "/health").close()
        except OSError:
            time.sleep(0.2)
        if server.poll() is not None:
            sys.exit(f"stream: the server ended with exit code {server.returncode}")
    sys.exit(f"stream: not healthy after {SECONDS} seconds")


def stream(port, model, case):
    """The tokens of one answer. The words of the test's tokenizer are numbers."""
    settings = {"max_tokens": case["count"], "temperature": 0, "ignore_eos": True, "stream": True}
    tokens, pieces = [], 0
    with ask(port, "/v1/completions", {"model": model, "prompt": case["prompt"], **settings}) as answer:
        for line in answer:
            if line.startswith(b"data: {"):
                words = json.loads(line[6:])["choices"][0]["text"].split()
                tokens += map(int, words)
                pieces += bool(words)
    if len(tokens) != case["count"] or pieces < case["count"] // 2:
        sys.exit(f"stream: {len(tokens)} tokens in {pieces} pieces, want {case['count']}")
    return tokens


def main():
    model, port, separator, *command = sys.argv[1:]
    assert separator == "--", sys.argv
    with open(os.path.join(model, "expected.json"), encoding="utf-8") as f:
        cases = json.load(f)
    server = subprocess.Popen(command, stdout=sys.stderr)
    try:
        ready(port, server)
        with ask(port, "/version") as answer:
            version = json.load(answer)["version"]
        with futures.ThreadPoolExecutor(len(cases)) as pool:
            tokens = list(pool.map(lambda case: stream(port, model, case), cases))
    finally:
        server.terminate()
        server.wait(120)
    print(json.dumps({"device": "served", "vllm": version, "tokens": tokens}))


if __name__ == "__main__":
    main()
