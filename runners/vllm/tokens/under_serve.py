"""make test-serve-vllm: two models of vLLM and one of the reference engine under `medusa serve`, on one simulated GPU that does not hold them all.

In: as run.py. Out: a line about each step, and last "test-serve-vllm: PASS ...". Fails: exit code 1 if an answer is not that of the engine alone, if a request is lost
without its engine having been killed, if a start captures or runs a forward as large as that of the profile, if no engine was evicted, put to sleep or woken, if an
engine process has not imported beside its API server (pool.yaml), if the log of decisions does not replay, or if a process is left.
"""

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent import futures

from case import HERE, Case, Failed, free_port
from clients import Lost, answer
from elastic_case import RANGE
from kept import Kept, begin
from options import BATCHED, CROWDED, flags, options
from run import make_checkpoints
from stream import ask, ready
from tools import ROOT, add_places, of_toolchain, settings

sys.path.insert(0, os.path.join(HERE, ".."))

from medusa_vllm import contract  # noqa: E402

# The name for clients, the case of test-tokens, the level of its sleep. Each case has another model, so answers of the one are not those of the other.
MODELS = ("first", "llama float32 V2 FULL_DECODE_ONLY served", 1), ("second", "qwen3 float32 V2 FULL_DECODE_ONLY served", 0)
MEMORY, SMALL = 0.45, 0.2  # of the device: of an engine of vLLM, and of the reference engine. Two of the three fit
CLIENTS = 4  # at a time. Their prompts together have fewer tokens than a forward of the profile
PATIENCE = 300  # seconds
ENGINE = "VLLM::EngineCor"  # as the kernel cuts the title of vLLM's engine process


class Model(Case):
    """A model of vLLM."""

    rows = BATCHED

    def __init__(self, s, name, text, sleep):
        super().__init__(s, text)
        self.name, self.sleep, self.memory = name, sleep, MEMORY
        self.more = {"pool": os.path.abspath(os.path.join(HERE, "..", "pool.yaml"))}

    def engine(self):
        return [*super().engine(), "--served-model-name", self.checkpoint, self.name, *(["--enable-sleep-mode"] if self.sleep else [])]

    def command(self):
        return ["{port}" if word == str(self.port) else word for word in self.engine()]

    def variables(self):
        """The engine's variables that the server's own environment lacks."""
        own = {k: v for k, v in self.environment("served", None).items() if os.environ.get(k) != v}
        return own | {"VLLM_SERVER_DEV_MODE": "1"}

    def alone(self):
        """Requests, and the answers of the engine alone, started natively."""
        tokens, _ = self.native()
        return [{"prompt": case["prompt"], "max_tokens": case["count"], "want": " ".join(map(str, got))} for case, got in zip(self.expected(), tokens, strict=True)]

    def demand(self, metrics):
        """Checks the engine's metrics on the server's page."""

    def profiles(self, log):
        """How many kernels of a log compute on as many rows as the profile's forward has."""
        return len(re.findall(rf"\tcuLaunchKernel\w*\t.*\tgrid={self.rows},1,1\t", log))

    def restorable(self):
        self.materialize()
        native = read(self.path("native.calls"))
        if not self.profiles(native):
            self.fail("the native start's log shows no forward of the profile: the log cannot be trusted")


class Elastic(Model):
    """A model of vLLM that has memory for half of its KV cache. It is Qwen3, which norms each of four heads: of the largest captured batch they are as many as the
    profile's forward has tokens."""

    rows = 4 * BATCHED
    mapped = RANGE // 2

    def engine(self):
        vllm = os.path.join(os.path.dirname(self.settings.python), "vllm")
        more = flags(options(self.dtype, self.graphs, CROWDED, True))
        return [vllm, "serve", self.checkpoint, "--host", "127.0.0.1", "--port", str(self.port), *more, "--served-model-name", self.checkpoint, self.name]

    def environment(self, step, mistake):
        return super().environment(step, mistake) | {"VLLM_PLUGINS": "medusa,tokens", contract.ENV_VLLM_KV: f"elastic:{self.mapped}"}

    def demand(self, metrics):
        found = re.search(rf'^medusa_kv_mapped_bytes{{[^}}]*model="{self.name}"[^}}]*}} (\S+)$', metrics, re.M)
        if not found or float(found[1]) != self.mapped:
            raise Failed(f"{self.name}: its KV cache has not {self.mapped} bytes\n{metrics}")


class Reference:
    """The model of the reference engine."""

    name, sleep, memory, more = "small", 1, SMALL, {}
    prompts = ["In the beginning", "And the LORD said unto Moses", "Go down", "Behold I will send a prophet", "the heaven and the earth"]

    def __init__(self, s):
        self.settings, self.folder = s, os.path.join(s.work, "reference")
        os.makedirs(self.folder, exist_ok=True)
        self.kept = Kept(self.folder, lambda line: print(f"{s.title}: {self.name}: {line}", flush=True))
        self.artifact = os.path.join(self.folder, "model.medusa")

    def variables(self):
        build = self.settings.build
        return {"LD_LIBRARY_PATH": f"{build}/simulated:{build}/lib"}

    def engine(self, command):
        model = os.path.join(ROOT, "runners", "reference", "models", "tiny")
        return [os.path.join(self.settings.build, "reference"), command, "--model", os.path.abspath(model), "--batch-sizes", "1,2,4", "--kv-cache-bytes", "16000000", "--enable-sleep-mode"]

    def command(self, port="{port}"):
        return [*self.engine("serve"), "--served-model-name", self.name, "--listen", f"127.0.0.1:{port}"]

    def alone(self):
        port = free_port()
        server = subprocess.Popen(self.command(port), env=os.environ | self.variables() | {"SIMGPU_CALL_LOG": os.path.join(self.folder, "native.calls")}, stderr=subprocess.DEVNULL)
        try:
            ready(port, server)
            requests = [{"prompt": prompt, "max_tokens": 12 + i} for i, prompt in enumerate(self.prompts)]
            return [r | {"want": answer(port, self.name, r, False)} for r in requests]
        finally:
            server.terminate()
            server.wait(PATIENCE)

    def restorable(self):
        command = [self.settings.medusa, "materialize", "-o", self.artifact, "--", *self.engine("run"), "--batches", "1"]
        subprocess.run(command, env=os.environ | self.variables(), check=True, capture_output=True)

    def demand(self, metrics):
        pass

    def profiles(self, log):
        return log.count("mark\tprofile-forward")


def read(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


class Server:
    """`medusa serve`, in a process that is ours."""

    def __init__(self, s, models):
        self.settings, self.models = s, models
        self.logs, self.decisions = os.path.join(s.work, "logs"), os.path.join(s.work, "decisions.jsonl")
        for folder in self.logs, os.path.join(s.work, "processes"):
            os.makedirs(folder, exist_ok=True)
            for name in os.listdir(folder):
                os.remove(os.path.join(folder, name))
        config = os.path.join(s.work, "serve.yaml")
        with open(config, "w", encoding="utf-8") as f:
            json.dump(self.configuration(), f)
        self.output = os.path.join(s.work, "serve.output")
        with open(self.output, "w", encoding="utf-8") as out:
            self.process = subprocess.Popen([s.medusa, "serve", config, "--decisions", self.decisions], env=self.environment(), stdout=out, stderr=out)

    def environment(self):
        s = self.settings
        return os.environ | {
            "PATH": os.path.join(os.path.abspath(ROOT), "simgpu") + ":" + os.environ["PATH"],
            "SIMGPU_PROCESSES": os.path.join(s.work, "processes"),
            "SIMGPU_SHARED": os.path.join(s.work, "device"),
            contract.ENV_CACHE: os.path.join(s.work, "medusa"),
        }

    def configuration(self):
        """JSON is YAML."""
        return {
            "listen": "127.0.0.1:0", "gpus": ["0"], "policy": {"name": "mqfq", "t": 5}, "host_memory_gb": 16, "retry": 0, "state": "state",
            "models": [
                {
                    "name": m.name, "command": m.command(), "artifact": m.artifact, "memory": m.memory, "slots": CLIENTS, "sleep": m.sleep, "start": 30, "service": 2, **m.more,
                    "env": m.variables() | {"SIMGPU_CALL_LOG": os.path.join(self.logs, m.name + "-{port}")},
                }
                for m in self.models
            ],
        }  # fmt: skip

    def port(self):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and self.process.poll() is None:
            if found := re.search(r"http://127\.0\.0\.1:(\d+)", read(self.output)):
                return int(found[1])
            time.sleep(0.05)
        raise Failed(f"medusa serve does not serve\n{read(self.output)[-2000:]}")

    def processes(self):
        """The names of all processes that the server has started, by number. A program's title overwrites its environment, so the parents identify a process."""
        parents, names = {}, {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                name, _, rest = read(f"/proc/{pid}/stat").partition("(")[2].rpartition(")")
            except OSError:
                continue
            parents.setdefault(int(rest.split()[1]), []).append(int(pid))
            names[int(pid)] = name
        found, left = {}, [self.process.pid]
        while left:
            for pid in parents.get(left.pop(), ()):
                found[pid] = names[pid]
                left.append(pid)
        return found

    def kill(self, names):
        """One process of an engine, as a crash would end it. False if there is none."""
        victims = [pid for pid, name in self.processes().items() if name.startswith(names)]
        if victims:
            os.kill(victims[0], signal.SIGKILL)
        return bool(victims)

    def stop(self):
        started = self.processes()
        self.process.terminate()
        try:
            code = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise Failed("medusa serve does not end after SIGTERM") from None
        left = [name for pid, name in started.items() if os.path.exists(f"/proc/{pid}")]
        if code or left:
            raise Failed(f"medusa serve: exit code {code}, {len(left)} processes are left ({left})")


class Load:
    """Clients that ask all models at random, while engines of vLLM are killed."""

    def __init__(self, server, requests, seed):
        """requests: of each model, with the answers of its engine alone."""
        self.server, self.requests, self.seed = server, requests, seed
        self.lock, self.wrong, self.lost, self.answered, self.kills = threading.Lock(), [], [], 0, 0

    def ask(self, port, i):
        rng = random.Random(self.seed * 1_000_003 + i)
        # A client's requests for a model come in runs, as people's do: each change may cost a start.
        name = random.Random(self.seed * 1_000_003 + i // (4 * CLIENTS)).choice(list(self.requests)) if rng.random() < 0.9 else rng.choice(list(self.requests))
        self.ask_of(port, name, rng)

    def ask_of(self, port, name, rng=random):
        request = rng.choice(self.requests[name])
        try:
            got = answer(port, name, request, rng.random() < 0.5)
        except Lost as e:
            with self.lock:
                self.lost.append((name, str(e)))
            return
        with self.lock:
            self.answered += 1
            if got.strip() != request["want"].strip():
                self.wrong.append(f"{name}: {request['prompt']} is answered by {got}, by the engine alone with {request['want']}")

    def run(self, port, count, kills):
        """Kills are spread over the requests."""
        done = threading.Semaphore(0)

        def killer():
            for _ in range(kills):
                for _ in range(count // (kills + 1)):
                    done.acquire()
                self.kills += self.server.kill(ENGINE)

        killing = threading.Thread(target=killer, daemon=True)
        killing.start()
        with futures.ThreadPoolExecutor(CLIENTS) as pool:
            for asked in [pool.submit(self.ask, port, i) for i in range(count)]:
                asked.add_done_callback(lambda _: done.release())
        killing.join(PATIENCE)


def check(load, server, models, kills):
    """The counts of the last line."""
    output = read(server.output)
    if load.wrong:
        raise Failed(f"{len(load.wrong)} wrong answers: {load.wrong[0]}")
    # A killed engine costs the requests whose streams have begun, at most, and says so.
    if load.kills != kills or len(load.lost) > load.kills * CLIENTS or any("engine" not in why.lower() for _, why in load.lost):
        raise Failed(f"{load.kills} engines were killed, {kills} were to be; {len(load.lost)} requests are lost: {load.lost[:5]}")
    counts, logs = {"captures": 0, "profile_forwards": 0}, os.listdir(server.logs)
    for m in models:
        for name in [name for name in logs if name.startswith(m.name + "-")]:
            log = read(os.path.join(server.logs, name))
            counts["captures"] += log.count("\tcuStreamBeginCapture")
            counts["profile_forwards"] += m.profiles(log)
    if any(counts.values()) or "native start" in output:
        raise Failed(f"{counts}: a start was not restored")
    if cold := [line for line in output.splitlines() if "cold start" in line]:
        raise Failed(f"the engine process of a start did not come from its pool: {cold[0]}")
    return counts | {"logs": len(logs), "killed": load.kills, "lost": len(load.lost)}


def metrics(port):
    with ask(port, "/metrics") as answer:
        return answer.read().decode()


def changes(text):
    """How often engines came into a state, by model and state."""
    # The engine that answered last is one of vLLM, whose own metrics are on the same page.
    if f'vllm:num_requests_running{{model="{MODELS[0][0]}",gpu="0"' not in text:
        raise Failed(f"no metrics of vLLM's engine\n{text}")
    return {(m, s): int(n) for m, s, n in re.findall(r'^medusa_serve_engine_changes_total\{model="(\w+)",state="(\w+)"\} (\d+)', text, re.M)}


def picture(s, folder, name, port):
    """A picture of the server's page as a browser shows it. Without a folder, none is taken."""
    if folder:
        command = [s.python, os.path.join(HERE, "picture.py"), f"http://127.0.0.1:{port}/", os.path.join(folder, name)]
        subprocess.run(command, check=True, timeout=PATIENCE)


def demand_changes(models, seen):
    for m in models:
        wanted = ["awake", *(["falling_asleep", "waking"] if m.sleep else ["evicted"])]
        missing = [state for state in wanted if not seen.get((m.name, state))]
        if missing:
            raise Failed(f"the engine of {m.name} was never {', '.join(missing)}: {seen}")


def replay(s, server):
    done = subprocess.run([s.medusa, "simulate", "--replay", server.decisions], capture_output=True, text=True, check=False)
    if done.returncode or "identical" not in done.stdout:
        raise Failed(f"replay decisions: {done.stdout}{done.stderr}")


def show(s, args):
    models = [Model(s, *MODELS[0]), Elastic(s, *MODELS[1]), Reference(s)]
    make_checkpoints(s, [text for _, text, _ in MODELS])
    requests = {m.name: m.kept.step("alone", m.alone) for m in models}
    for m in models:
        m.kept.step("restorable", m.restorable)
    server = Server(s, models)
    load = Load(server, requests, args.seed)
    try:
        port = server.port()
        halfway = threading.Timer(args.after, picture, (s, args.pictures, "page-vllm-load.png", port))
        halfway.start()
        load.run(port, args.requests, args.kills)
        halfway.join(PATIENCE)
        # For the events that did not happen because of the kills: two of the three have room, so each makes room for another.
        for m in 2 * [models[1], models[0], models[2]]:
            load.ask_of(port, m.name)
            m.demand(metrics(port))
        load.ask_of(port, MODELS[0][0])
        picture(s, args.pictures, "page-vllm-idle.png", port)
        seen = changes(metrics(port))
    finally:
        server.stop()
    counts = check(load, server, models, args.kills)
    demand_changes(models, seen)
    replay(s, server)
    named = {"starts": "starting", "evicted": "evicted", "asleep": "falling_asleep", "woken": "waking"}
    counts = {name: sum(n for (_, state), n in seen.items() if state == of) for name, of in named.items()} | counts
    if counts["logs"] != counts["starts"]:
        raise Failed(f"{counts['starts']} starts have left {counts['logs']} logs")
    return f"device=simulated models={len(models)} requests={args.requests} identical={load.answered} " + " ".join(f"{k}={v}" for k, v in counts.items())


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_places(p)
    p.add_argument("--sources", help="digest of the sources: work of other ones is dropped; default: nothing is kept")
    p.add_argument("--requests", type=int, default=160)
    p.add_argument("--kills", type=int, default=2, help="engines of vLLM to kill")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--pictures", help="folder for two pictures of the server's page, which chromium takes")
    p.add_argument("--after", type=float, default=60, help="seconds of load before the first picture")
    args = p.parse_args()
    s = settings(args, "test-serve-vllm")
    begin(s.work, args.sources)
    try:
        line = show(s, args)
    except Failed as e:
        print(f"{s.title}: FAIL {e}")
        sys.exit(1)
    if not of_toolchain(s):
        print(f"{s.title}: FAIL a kernel was made by another tool chain")
        sys.exit(1)
    print(f"{s.title}: PASS {line}")


if __name__ == "__main__":
    main()
