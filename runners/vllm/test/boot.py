"""make bench-boot: how long `vllm serve` takes until it is healthy and until its first token, in turns: natively, restored, with each step of a pool of the
start's own (`--pool FILE`) alone and with all of them, and in processes of a pool that runs already.

In: the output of `make vllm`. Out: a line about each round, a table of wall and processor seconds, the phases of the restored starts, and a last line: PASS if the
aims are met, else short. Fails: exit code 1 if a start is not as it should be, or if anything is compiled or loaded between /health and the first token of a
restored start. On the simulated GPU, kernels take no time: what is measured is everything else.
"""

import getpass
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

from run import arguments, stop
from serve import GRAPHS, MODEL, Server

ROUNDS = 5
AIMS = {"beside": 0.6, "pool": 0.25}  # of native
READY_SECONDS = 600
POOL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "pool.yaml")
QUIET = 20  # seconds after a start without imports: longer than a start from the pool takes

# A module that, imported first, undoes a step: the collector runs during imports again.
COLLECTS = "boot_collects"

# Calls of the driver that load code.
LOADS = "cuModuleLoad", "cuLibraryLoad", "cuLinkCreate"

# Names a user, so no file for all can have it. vLLM sets it before it spawns the engine core, as it sets what pool.yaml has for it.
INDUCTOR = {"TORCHINDUCTOR_CACHE_DIR": os.path.join(tempfile.gettempdir(), "torchinductor_" + getpass.getuser())}


def processors(root):
    """Processor seconds of all processes below one, with those that have ended and were waited for. Processes that wait in a pool count before and after,
    so a difference has the start alone."""
    parent, seconds = {}, {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
                fields = f.read().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        parent[int(pid)], seconds[int(pid)] = int(fields[1]), sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    below = {root}
    while more := {pid for pid, of in parent.items() if of in below} - below:
        below |= more
    return sum(seconds[pid] for pid in below)


class Boot(Server):
    def __init__(self, args):
        super().__init__(args, "V1")  # the other runner counts sampled tokens in a kernel, and kernels do nothing here
        self.socket = self.path("pool/socket")
        # What each of the two processes imports until the server is healthy, as far as imports begin no work.
        read = "import json, sys, yaml; json.dump(yaml.safe_load(open(sys.argv[1])), sys.stdout)"
        text = subprocess.check_output([args.python, "-c", read, POOL])
        self.api_server, self.engine_core = json.loads(text)["engines"]
        self.more = {}  # variables of the start at hand

    def variables(self):
        """The same for all starts: imports look through the whole environment."""
        env = self.environment("restored")
        del env["SIMGPU_CALL_LOG"]
        return env | {"CUDART_STACK": "clean", "MEDUSA_CACHE": self.path("medusa")} | self.more

    def compiled(self):
        """The files in the caches of compilers."""
        env = self.variables()
        caches = env["VLLM_CACHE_ROOT"], env["TRITON_CACHE_DIR"], INDUCTOR["TORCHINDUCTOR_CACHE_DIR"], env["MEDUSA_CACHE"]
        return {os.path.join(folder, name) for cache in caches for folder, _, names in os.walk(cache) for name in names if not name.endswith(".lock")}

    def token(self):
        """How many tokens a request for one gets. What they are says nothing here."""
        body = {"model": MODEL, "prompt": [1, 2, 3], "max_tokens": 1, "temperature": 0, "ignore_eos": True}
        url = f"http://127.0.0.1:{self.port}/v1/completions"
        request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["usage"]["completion_tokens"]
        except urllib.error.HTTPError as e:
            stop("first token:", e, e.read().decode())

    def timed(self, way, round, command):
        """Seconds from the start of the command to the first answer of /health, to the first token, and of processors to the latter."""
        output, calls = self.path(f"{way}-{round}.output"), self.variables().get("SIMGPU_CALL_LOG")
        with open(output, "w", encoding="utf-8") as out:
            before, began = processors(os.getpid()), time.monotonic()
            server = subprocess.Popen(command, env=self.variables(), stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        try:
            self.wait(way, server)
            healthy = time.monotonic() - began
            logged, compiled, asked = calls and os.path.getsize(calls), self.compiled(), time.monotonic()
            tokens = self.token()
            first = healthy + time.monotonic() - asked
            work = processors(os.getpid()) - before
            if tokens != 1:
                stop(way, "first token: tokens:", tokens)
            if new := self.compiled() - compiled:
                stop(way, "compiled after /health:", sorted(new)[:5])
        finally:
            server.terminate()
            server.wait(60)
        if calls:
            self.loads(way, calls, logged)
        return healthy, first, work

    def loads(self, way, calls, logged):
        """Code that is loaded for the first request."""
        with open(calls, "rb") as log:
            log.seek(logged)
            after = [fields[3] for line in log if len(fields := line.decode(errors="replace").split("\t")) > 4]
        loads = [name for name in after if name.startswith(LOADS)]
        print(f"{way}: {len(after)} calls of the driver after /health, {len(loads)} of them load code", flush=True)
        if not any(name.startswith(("cuLaunchKernel", "cuGraphLaunch")) for name in after):
            stop(way, "the log has no launch for the request")
        if loads and way != "native":
            stop(way, "code is loaded after /health:", loads[:5])

    def restored(self, way, round, artifact, *options):
        status = self.path(f"{way}-{round}.json")
        took = self.timed(way, round, [self.medusa, "restore", *options, "--status", status, artifact, "--", *self.command])
        told = self.status(status)
        if (told["status"], told.get("graphs")) != ("restored", GRAPHS) or told.get("pool", "") != ("yes" if options else ""):
            stop(way, told)
        with open(self.path(f"{way}-{round}.output"), encoding="utf-8") as out:
            cold = [line for line in out if "medusa: " in line]
        if cold:
            stop(way, *cold)
        return took

    def config(self, name, api_server=(), engine_core=()):
        """A pool's file, and the modules of its two processes."""
        shared = {"command": self.command, "environment": self.variables(), "size": 1, "folder": os.getcwd()}
        engines = [
            shared | {"name": "api-server", "modules": list(api_server)},
            shared | {"name": "engine-core", "modules": list(engine_core), "spawned": True, "environment": self.variables() | self.engine_core["environment"] | INDUCTOR},
        ]
        with open(self.path(name), "w", encoding="utf-8") as f:  # JSON is YAML
            json.dump({"socket": self.socket, "quiet": QUIET, "engines": engines}, f)
        return self.path(name)

    def pool(self):
        return subprocess.Popen([self.medusa, "pool", self.config("pool.yaml", self.api_server["modules"], self.engine_core["modules"])], env=self.variables(), stdin=subprocess.DEVNULL)

    def state(self):
        done = subprocess.run([self.medusa, "pool", "status", "--json", self.socket], capture_output=True, text=True, check=False)
        return json.loads(done.stdout)["engines"] if done.returncode == 0 else []

    def ready(self):
        end = time.monotonic() + READY_SECONDS
        while time.monotonic() < end:
            engines = self.state()
            if engines and all(e["ready"] == e["size"] for e in engines):
                return engines
            time.sleep(0.5)
        stop("the pool has no processes after", READY_SECONDS, "seconds", self.state())


def ratios(took, way, what):
    """Each round's share of the native start."""
    return [start[what] / native[what] for start, native in zip(took[way], took["native"])]


def table(took):
    print("| start | /health | of native | first token | of native | processors | of native |\n|---|---|---|---|---|---|---|")
    for way, starts in took.items():
        cells = []
        for what, seconds in enumerate(zip(*starts)):
            r = ratios(took, way, what)
            cells += [f"{statistics.median(seconds):.1f} s ({min(seconds):.1f} to {max(seconds):.1f})", f"{statistics.median(r):.2f} ({min(r):.2f} to {max(r):.2f})"]
        print("|", way, "|", " | ".join(cells), "|")


def phases(server, ways, rounds):
    """Seconds of each phase of the engine core, medians."""
    took = {}
    for way in ways:
        for round in range(rounds):
            marked = server.status(server.path(f"{way}-{round}.json"))["phases"]
            for phase, after in itertools.pairwise(marked):
                took.setdefault(phase["name"], {}).setdefault(way, []).append(after["began"] - phase["began"])
    print("| phase |", " | ".join(ways), "|\n|---|" + "---|" * len(ways))
    for name, by in took.items():
        print(f"| {name} |", " | ".join(f"{statistics.median(by[way]):.2f} s" if way in by else "-" for way in ways), "|")


def main():
    rounds = int(os.environ.get("ROUNDS") or ROUNDS)
    server = Boot(arguments())
    artifact = server.materialize()
    with open(server.path(COLLECTS + ".py"), "w", encoding="utf-8") as f:
        f.write("import gc\n\ngc.set_threshold(700, 10, 10)\n")
    for way, command in (("native", server.command), ("restored", [server.medusa, "restore", artifact, "--", *server.command])):
        server.more = {"SIMGPU_CALL_LOG": server.path(way + ".calls")}
        server.timed(way, "logged", command)
    server.more = {}
    pool = server.pool()

    def native(way, round, more):
        server.more = more
        return server.timed(way, round, server.command)

    def restored(way, round, more, *socket):
        server.more = more
        return server.restored(way, round, artifact, *(["--pool", *socket] if socket else []))

    both = server.api_server["modules"], server.engine_core["modules"]

    def beside(way, round, more, api_server=both[0], engine_core=both[1]):
        server.more = more
        return restored(way, round, more, server.config("beside.yaml", api_server, engine_core))

    ways = {
        "native": lambda *start: native(*start, {}),
        "restored": lambda *start: restored(*start, {}),
        "core beside": lambda *start: beside(*start, {}, api_server=[]),
        "collector on": lambda *start: beside(*start, {"PYTHONPATH": server.folder}, [COLLECTS, *both[0]], [COLLECTS, *both[1]]),
        "beside": lambda *start: beside(*start, {}),
        "pool": lambda *start: restored(*start, {}, server.socket),
    }
    bare = {"PYTHONPYCACHEPREFIX": server.path("bytecode"), "PYTHONDONTWRITEBYTECODE": "1"}
    once = {"native": lambda *start: native(*start, bare), "beside": lambda *start: beside(*start, bare)}
    took = {way: [] for way in ways}
    try:
        for round in range(rounds):
            # The pool has nothing to do while the others are measured.
            engines = server.ready()
            for way, start in ways.items():
                took[way].append(start(way, round))
            print(f"round {round}:", ", ".join(f"{way} {starts[-1][0]:.1f} s, {starts[-1][1]:.1f} s" for way, starts in took.items()), flush=True)
    finally:
        pool.terminate()
        pool.wait(60)
    table(took)
    print("without bytecode, one start each:", ", ".join(f"{way} {start(way, 'bare')[0]:.1f} s" for way, start in once.items()))
    phases(server, [way for way in ways if way != "native"], rounds)
    for e in engines:
        print(f"{e['name']}: imported in {e['counts']['import_seconds']:.1f} s, {e['pss'] / 2**20:.0f} MiB")
    reached = {(way, what): statistics.median(ratios(took, way, i)) for way in AIMS for i, what in enumerate(("healthy", "token"))}
    met = all(ratio <= AIMS[way] for (way, _), ratio in reached.items())
    print(
        f"bench-boot: {'PASS' if met else 'short'} device=simulated rounds={rounds}",
        *(f"{way}_{what}={ratio:.2f}/{AIMS[way]}" for (way, what), ratio in reached.items()),
    )


if __name__ == "__main__":
    sys.exit(main())
