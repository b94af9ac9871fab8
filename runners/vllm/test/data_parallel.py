"""make test-vllm-data-parallel: `vllm serve` with two engines of a dense model, natively and restored from an artifact that one engine made, and compared.

In: the output of `make vllm`. Out: a line about each step, and last the line with the counts. Fails: exit code 1 if a step fails, an engine was not restored, captures, or has
other graphs than the native engine of its place, or if a start with a mistake does not go on as docs/ranks.md says.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request

from run import HERE, SECONDS, TORCH, Engine, arguments, installed
from serve import GRAPHS, MODEL, SLEEP, Server, check

from compare import Comparison, read  # of TORCH's tests, whose folder run.py has added

TITLE = "test-vllm-data-parallel"
ENGINES = 2
DATA_PARALLEL = ["--data-parallel-size", str(ENGINES)]
ANSWER = 4  # tokens
ENDS = 30  # seconds in which vLLM's workers may notice that their parent has ended
RECORDED = "record-a", "record-b", "check-native"


class Maker(Engine):
    """One engine, as a program of its own, makes the artifact on one device."""

    def __init__(self, args):
        engine = [os.path.abspath(args.python), os.path.join(HERE, "engine.py"), MODEL]
        super().__init__(args, "one engine", engine, folder="data-parallel-made")
        self.command = [sys.executable, os.path.join(TORCH, "test", "engine_run.py"), self.folder, *engine]


class Parallel(Server):
    def __init__(self, args, name="data-parallel", model=MODEL):
        super().__init__(args, name=name, model=model)
        self.command = [part for part in self.command if part != SLEEP] + ["--worker-extension-cls", "account.Account"]

    def environment(self, step):
        env = super().environment(step)
        del env["SIMGPU_CALL_LOG"]  # all processes would write to one file
        return env | {
            "SIMGPU_DEVICES": str(ENGINES), "SIMGPU_TRUTH": self.path(f"{step}.truth.%p"), "ENGINE_ACCOUNTS": "1", "MEDUSA_VLLM_PLACES": self.path(f"{step}.places")
        }  # fmt: skip

    def restore(self, step, artifact, *options):
        return [self.medusa, "restore", *options, "--status", self.path(step + ".json"), artifact, "--", *self.command, *DATA_PARALLEL]

    @contextlib.contextmanager
    def running(self, step, command, **variables):
        with open(self.path(step + ".output"), "w", encoding="utf-8") as out:
            server = subprocess.Popen(command, env=self.environment(step) | variables, stdout=out, stderr=out)
        try:
            yield server
        finally:
            server.terminate()
            server.wait(60)
        print(f"{TITLE}: {step}: done", flush=True)

    def accounts(self, step, command, **variables):
        """Starts the server, sends a request to each engine, and asks each for its account. Returns accounts, the lines of /metrics, and Medusa's lines."""
        with self.running(step, command, **variables) as server:
            self.wait(step, server)
            self.ask("/collective_rpc", {"method": "forget_warm_up"})
            answers = [self.answer(engine) for engine in range(ENGINES)]
            check(f"{step}: answers", all(len(tokens) == ANSWER for tokens in answers), answers)
            self.ask("/collective_rpc", {"method": "account", "args": [self.path(step)]})
            metrics = [line for line in self.get("/metrics").splitlines() if line.startswith("medusa_")]
        found = []
        for engine in range(ENGINES):
            with open(self.path(f"{step}.account.{engine}"), encoding="utf-8") as f:
                found.append(json.load(f))
        devices = [account["device"] for account in found]
        check(f"{step}: devices", devices == list(range(ENGINES)), devices)
        answered = [account["answered"] for account in found]
        check(f"{step}: tokens of each engine", all(n >= ANSWER for n in answered), answered)
        launches = [(account["launches"], account["steps"]) for account in found]
        check(f"{step}: launches of graphs", all(one == other and one for one, other in launches), launches)
        return found, metrics, self.lines(step)

    def lines(self, step):
        with open(self.path(step + ".output"), encoding="utf-8") as f:
            return [line[line.index("medusa: ") :].strip() for line in f if "medusa: " in line]

    def ask(self, path, body, **headers):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"} | headers)
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)

    def answer(self, engine):
        """The tokens of a request that a certain engine serves."""
        body = {"token_ids": [1, 2, 3], "sampling_params": {"max_tokens": ANSWER, "ignore_eos": True, "detokenize": False}}
        return self.ask("/inference/v1/generate", body, **{"X-data-parallel-rank": str(engine)})["choices"][0]["token_ids"]

    def told(self, step):
        """The status of the start, and that of each engine."""
        return [self.status(self.path(step + ".json" + end)) for end in ("", *(f".{engine}" for engine in range(ENGINES)))]

    def graphs(self, step, engine):
        places = self.path(f"{step}.places.{engine}")
        with open(places, encoding="utf-8") as f:
            return read(self.path(f"{step}.truth.{json.load(f)['process']}"), places)

    def ends(self, step, command, **variables):
        """A start that must fail: its exit status."""
        with self.running(step, command, **variables) as server:
            return server.wait(SECONDS)

    def refused(self, step, server):
        """The status of a start that is refused before vLLM starts its engines, which this test does not wait for."""
        end = time.monotonic() + SECONDS
        while not os.path.exists(self.path(step + ".json")) and server.poll() is None and time.monotonic() < end:
            time.sleep(0.2)
        return self.status(self.path(step + ".json"))

    def left(self, step):
        """Processes of a start that do not end soon after it."""
        end = time.monotonic() + ENDS
        while (found := self.processes(step)) and time.monotonic() < end:
            time.sleep(0.5)
        return found

    def processes(self, step):
        """By a file in their environment."""
        mark, found = f"SIMGPU_TRUTH={self.path(step)}.truth.%p".encode(), []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as f:
                if mark in f.read().split(b"\0"):
                    found.append(pid)
        return found


def compare(maker, server):
    """The graphs of each engine, from the device's own account of the processes."""
    c = Comparison()
    a, b, checked = (read(maker.path(f"{run}.truth"), maker.path(f"{run}.places")) for run in RECORDED)
    for engine in range(ENGINES):
        c.pairs = {}
        c.run([a, b, server.graphs("native", engine), checked], server.graphs("restored", engine))
    return c


def same(c, native, restored):
    for engine, (one, other) in enumerate(zip(native, restored)):
        for what in ("keys", "launches", "steps"):
            if one[what] != other[what] or not one["keys"]:
                c.differ(f"engine {engine}", what, one[what], other[what])
        if one["captures"] < len(one["keys"]) or other["captures"]:
            c.differ(f"engine {engine}", "captures:", one["captures"], other["captures"])


def natively(server, step, native, command, reason):
    """All engines are native, with one reason."""
    accounts, _, lines = server.accounts(step, command)
    told = server.told(step)
    check(f"{step}: starts", [a["start"] for a in accounts] == ["native"] * ENGINES, accounts)
    check(f"{step}: status", {(st["status"], st["reason"]) for st in told} == {("native", reason)}, told)
    check(f"{step}: keys", [a["keys"] for a in accounts] == [a["keys"] for a in native])
    return lines


def main():
    args = arguments()
    maker, server = Maker(args), Parallel(args)
    artifact = maker.materialize()
    native, _, _ = server.accounts("native", [*server.command, *DATA_PARALLEL])
    check("native: starts", [a["start"] for a in native] == ["native"] * ENGINES, native)

    restored, metrics, lines = server.accounts("restored", server.restore("restored", artifact, "--strict"))
    told = server.told("restored")
    check("restored: starts", [a["start"] for a in restored] == ["restored"] * ENGINES, restored)
    check("restored: status", [(st["status"], st.get("graphs")) for st in told] == [("restored", GRAPHS)] * (1 + ENGINES), told)
    check("restored: engines", [(st.get("engine", 0), st.get("engines")) for st in told] == [(0, ENGINES), *((n, ENGINES) for n in range(ENGINES))], told)
    check("restored: metrics", 'medusa_starts_total{reason="",status="restored"} 1.0' in metrics, metrics)
    check("restored: lines", len(lines) == ENGINES and all(line.startswith("medusa: restored ") for line in lines), lines)
    c = compare(maker, server)
    same(c, native, restored)

    spoilt = server.path("spoilt.medusa")
    shutil.copy(artifact, spoilt)
    with open(spoilt, "r+b") as f:
        f.truncate(os.path.getsize(artifact) // 2)
    lines = natively(server, "spoilt", native, server.restore("spoilt", spoilt), "artifact_corrupt")
    check("spoilt: lines", len(set(lines)) == 1, lines)

    step = "one-native"
    accounts, metrics, lines = server.accounts(step, server.restore(step, artifact), ENGINE_FAILS="1 error")
    told = server.told(step)
    check(f"{step}: starts", [a["start"] for a in accounts] == ["restored", "native"], accounts)
    check(f"{step}: status", [st["status"] for st in told] == ["native", "restored", "native"], told)
    check(f"{step}: detail", told[0]["detail"].startswith("engine 1 of 2 is native: unsupported: "), told[0])
    check(f"{step}: metrics", 'medusa_starts_total{reason="unsupported",status="native"} 1.0' in metrics, metrics)

    step = "death"
    began = time.monotonic()
    code = server.ends(step, server.restore(step, artifact), ENGINE_FAILS="1 death")
    check(f"{step}: exit status", code not in (0, 86), code)
    check(f"{step}: status of the start", server.told(step)[0]["status"] == "none", server.told(step))
    print(f"{TITLE}: {step}: the start ended with exit status {code} after {time.monotonic() - began:.0f} s", flush=True)
    left = server.left(step)
    check(f"{step}: processes left", not left, left)

    refused = server.path("refused.medusa")
    code = server.ends("materialize", [server.medusa, "materialize", "-o", refused, "--", *server.command, *DATA_PARALLEL])
    with open(server.path("materialize.output"), encoding="utf-8") as f:
        output = f.read()
    check("materialize: refused", code == 1 and "leave data_parallel_size out" in output and not os.path.exists(refused), code, output[-2000:])

    experts = Parallel(args, "data-parallel-experts", os.path.join(HERE, "models", "qwen2-moe"))
    with experts.running("experts", experts.restore("experts", artifact)) as running:
        told = experts.refused("experts", running)
    check("experts: status", (told["status"], told["reason"]) == ("native", "unsupported") and "share experts" in told["detail"], told)
    check("experts: lines", len(experts.lines("experts")) == 1, experts.lines("experts"))

    for d in c.differences[:20]:
        print("difference:", d)
    verdict = "PASS" if c.graphs == ENGINES * GRAPHS and c.pointers and not c.differences else "FAIL"
    print(
        f"{TITLE}: {verdict} device=simulated vllm={installed(args.python)} engines={ENGINES} graphs={c.graphs} nodes={c.nodes} pointers={c.pointers} "
        f"differences={len(c.differences)}"
    )
    sys.exit(verdict != "PASS")


if __name__ == "__main__":
    main()
