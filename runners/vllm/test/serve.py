"""make test-vllm-serve: `vllm serve` and an offline LLM with an engine process, materialized and restored by their unchanged
command lines, and vLLM's /metrics then. The server sleeps and wakes once.

In: the output of `make vllm`. Out: a line about each start, and last the line with the counts. Fails: exit code 1 if a start
is not as it should be. Requests are not served here: the kernel that counts sampled tokens is a no-op on the simulated GPU.
"""

import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request

from run import HERE, SECONDS, Engine, arguments, stop

MODEL = os.path.join(HERE, "models", "llama")
GRAPHS = 4
SLEEP = "--enable-sleep-mode"
ASLEEP, AWAKE = '{"is_sleeping":true}', '{"is_sleeping":false}'


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server(Engine):
    def __init__(self, args, runner="V2", name="serve", model=MODEL, loading="dummy", share="0.3"):
        self.port, self.model = free_port(), model
        compilation = {"mode": 0, "cudagraph_mode": "FULL_DECODE_ONLY", "cudagraph_capture_sizes": [1, 2, 4, 8]}
        command = [
            os.path.join(os.path.dirname(os.path.abspath(args.python)), "vllm"), "serve", model, "--load-format", loading,
            "--skip-tokenizer-init", "--max-model-len", "256", "--max-num-seqs", "8", "--max-num-batched-tokens", "480",  # as engine.py, which takes this artifact, too
            "--gpu-memory-utilization", share, "--attention-config", json.dumps({"backend": "FLASH_ATTN"}),
            "--compilation-config", json.dumps(compilation), "--host", "127.0.0.1", "--port", str(self.port), SLEEP,
        ]  # fmt: skip
        super().__init__(args, name, command, runner)

    def environment(self, step):
        kept = {k: v for k, v in super().environment(step).items() if k != "VLLM_ENABLE_V1_MULTIPROCESSING"}
        path = filter(None, [kept["PYTHONPATH"], os.path.join(HERE, "served")])
        return kept | {"VLLM_SERVER_DEV_MODE": "1", "PYTHONPATH": ":".join(path)}  # for /sleep

    def get(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
            return answer.read().decode()

    def post(self, path):
        with urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", method="POST"), timeout=60) as answer:
            return answer.status

    def doze(self):
        """Sleeps and wakes, the KV cache first. Returns the server's answers."""
        found = [self.post("/sleep?level=2"), self.get("/is_sleeping")]
        found += [self.post("/wake_up?tags=kv_cache"), self.get("/is_sleeping"), self.post("/wake_up?tags=weights"), self.get("/is_sleeping")]
        return found

    def serve(self, step, artifact, *extra, then=None, **variables):
        """Starts the server, reads status and metrics once it is healthy, and stops it: status, metrics, and Medusa's lines."""
        status, output = self.path(step + ".json"), self.path(step + ".output")
        command = [self.medusa, "restore", "--status", status, artifact, "--", *self.command, *extra]
        with open(output, "w", encoding="utf-8") as out:
            server = subprocess.Popen(command, env=self.environment(step) | variables, stdout=out, stderr=out)
        try:
            self.wait(step, server)
            metrics, told = self.get("/metrics"), self.status(status)
            if then:
                then()
        finally:
            server.terminate()
            server.wait(60)
        with open(output, encoding="utf-8") as out:
            lines = [line for line in out if "medusa: " in line]
        print(f"test-vllm-serve: {step}: done", flush=True)
        return told, [line for line in metrics.splitlines() if line.startswith("medusa_")], lines

    @staticmethod
    def status(path):
        if not os.path.exists(path):
            return {"status": "none", "reason": ""}
        with open(path, encoding="utf-8") as f:
            return json.load(f)

    def wait(self, step, server):
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            try:
                return self.get("/health")
            except (OSError, urllib.error.URLError):
                time.sleep(0.2)
            if server.poll() is not None:
                stop(f"{step}: the server ended with exit code {server.returncode}")
        stop(f"{step}: not healthy after {SECONDS} seconds")


def check(what, good, *seen):
    if not good:
        stop(what, *seen)


def main():
    args = arguments()
    server = Server(args)
    artifact = server.materialize()

    dozed = []
    status, metrics, lines = server.serve("restored", artifact, then=lambda: dozed.extend(server.doze()))
    check("restored server: sleep", [str(d).replace(" ", "") for d in dozed] == ["200", ASLEEP, "200", ASLEEP, "200", AWAKE], dozed)
    check("restored server: status", (status["status"], status.get("graphs")) == ("restored", GRAPHS), status)
    check("restored server: metrics", 'medusa_starts_total{reason="",status="restored"} 1.0' in metrics, metrics)
    check("restored server: metrics", f"medusa_graphs {float(GRAPHS)}" in metrics, metrics)
    check("restored server: lines", len(lines) == 1 and f"medusa: restored {GRAPHS} graphs in " in lines[0], lines)
    calls = [name for name, _ in server.log("restored")]
    made = sum(c.startswith("cuGraphInstantiate") for c in calls)
    check("restored server: graphs made at the start and when it wakes", made == 2 * GRAPHS, made)
    check("restored server: captures", not any(c.startswith("cuStreamBeginCapture") for c in calls))

    status, metrics, lines = server.serve("native", artifact, "--enforce-eager")
    check("native server: status", (status["status"], status["reason"]) == ("native", "unsupported"), status)
    check("native server: metrics", 'medusa_starts_total{reason="unsupported",status="native"} 1.0' in metrics, metrics)
    check("native server: lines", len(lines) == 1 and "enforce_eager" in lines[0], lines)

    status, metrics, lines = server.serve("switched-off", artifact, VLLM_PLUGINS="")
    check("server without the plug-in: status", (status["status"], status["reason"]) == ("native", "no_session"), status)
    check("server without the plug-in: metrics", not metrics, metrics)
    check("server without the plug-in: lines", len(lines) == 1 and "without a session" in lines[0], lines)

    engine = [os.path.abspath(args.python), os.path.join(HERE, "engine.py"), MODEL, "--engine-process", "--set", "enable_sleep_mode=true"]
    methods = "fork", "spawn"
    for method in methods:
        path = server.path(method + ".json")
        command = [server.medusa, "restore", "--status", path, artifact, "--", *engine]
        server.run("offline, engine process by " + method, command, VLLM_WORKER_MULTIPROC_METHOD=method)
        status = server.status(path)
        check(f"offline engine by {method}: status", (status["status"], status.get("graphs")) == ("restored", GRAPHS), status)
    print(f"test-vllm-serve: PASS device=simulated status=restored graphs={GRAPHS} starts={3 + len(methods)}")


if __name__ == "__main__":
    main()
