"""The recipe of docs/serve.md for an engine in a container, run as written but for the container: a program takes the place of docker.

In: an artifact, made without a key. Out: the statuses of two starts, each with a new key of the server's. Fails: with Wrong. Requests are not answered: the kernel that
counts sampled tokens is a no-op on the simulated GPU.
"""

import contextlib
import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

from run import HERE, ROOT, SECONDS, Case
from serve import MODEL, free_port

PAGE = os.path.join(ROOT, "docs", "serve.md")
READY = 'medusa_serve_engine{model="llama",gpu="0",state="awake"} 1'

# It knows the options of the recipe. The image is a file with the command and the environment that an image would have.
DOCKER = f"""#!{sys.executable}
import json, os, sys
run, *words = sys.argv[1:]
assert run == "run"
passed, port = {{}}, ""
while words[0].startswith("-"):
    option = words.pop(0)
    if option == "-e":
        name = words.pop(0)
        passed[name] = os.environ[name]
    elif option == "-p":
        port = words.pop(0).split(":")[1]
    elif option == "--gpus":
        passed["CUDA_VISIBLE_DEVICES"] = words.pop(0).removeprefix("device=")
    elif option != "--rm":
        sys.exit("docker: " + option)
with open(words.pop(0), encoding="utf-8") as f:
    image = json.load(f)
os.execve(image["command"][0], [*image["command"], "--port", port, *words], image["environment"] | passed)
"""


class Wrong(Exception):
    pass


def lines():
    """The two lines of the recipe."""
    with open(PAGE, encoding="utf-8") as f:
        found = re.search(r"^ +(command: \[docker, run, .*\])\n +(env: .*)$", f.read(), re.MULTILINE)
    if not found:
        raise Wrong("docs/serve.md has no recipe for a container")
    return found.groups()


class Recipe(Case):
    def __init__(self, args, artifact):
        super().__init__(args, "llama", "FLASH_ATTN", "V2", "FULL_DECODE_ONLY", folder="deployment recipe")
        compilation = {"mode": 0, "cudagraph_mode": "FULL_DECODE_ONLY", "cudagraph_capture_sizes": [1, 2, 4, 8]}
        vllm = [
            os.path.join(os.path.dirname(os.path.abspath(args.python)), "vllm"), "serve", MODEL, "--load-format", "dummy", "--skip-tokenizer-init", "--max-model-len", "256",
            "--max-num-seqs", "8", "--max-num-batched-tokens", "480", "--gpu-memory-utilization", "0.3", "--attention-config", json.dumps({"backend": "FLASH_ATTN"}),
            "--compilation-config", json.dumps(compilation), "--host", "127.0.0.1",
        ]  # fmt: skip
        self.status = self.path("status.json")
        self.image = {"command": [self.medusa, "restore", "--status", self.status, artifact, "--", *vllm], "environment": self.inside()}

    def inside(self):
        kept = {k: v for k, v in self.environment("restored").items() if k not in ("VLLM_ENABLE_V1_MULTIPROCESSING", "VLLM_CACHE_ROOT", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")}
        return kept | {"HOME": self.folder, "MEDUSA_CACHE": self.path("medusa"), "PYTHONPATH": os.path.join(HERE, "served")}

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(text)
        return self.path(name)

    def run_server(self):
        """A start of the server, until it takes its engine for ready. Returns the status of the engine's start."""
        with contextlib.suppress(FileNotFoundError):
            os.remove(self.status)
        command, env = lines()
        image, port = self.write("image", json.dumps(self.image)), free_port()
        config = self.write("serve.yaml", f"listen: 127.0.0.1:{port}\ngpus: [\"0\"]\nstate: {self.path('state')}\nmodels:\n- name: llama\n  {command.replace('IMAGE', image)}\n  {env}\n")
        os.chmod(self.write("docker", DOCKER), 0o755)
        with open(self.path("serve.output"), "a", encoding="utf-8") as out:
            server = subprocess.Popen([self.medusa, "serve", config], env=os.environ | {"PATH": self.folder + ":" + os.environ["PATH"]}, stdout=out, stderr=out)
        try:
            self.ready(server, port)
            with open(self.status, encoding="utf-8") as f:
                return json.load(f)
        finally:
            server.terminate()
            server.wait(60)

    def ready(self, server, port):
        end, asked = time.monotonic() + SECONDS, False
        while time.monotonic() < end:
            time.sleep(0.5)
            if server.poll() is not None:
                raise Wrong(f"recipe: the server ended with exit code {server.returncode}")
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
                    if READY in answer.read().decode():
                        return
            except (OSError, urllib.error.URLError):
                continue
            if not asked:
                asked = True
                threading.Thread(target=self.ask, args=(port,), daemon=True).start()
        raise Wrong(f"recipe: the engine is not ready after {SECONDS} seconds")

    @staticmethod
    def ask(port):
        """Nobody answers: the request makes the server start the engine."""
        body = json.dumps({"model": "llama", "prompt": [1, 2, 3], "max_tokens": 1}).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/completions", body, {"Content-Type": "application/json"})
        with contextlib.suppress(OSError, urllib.error.URLError):
            urllib.request.urlopen(request, timeout=SECONDS)
