"""make bench-boot: how long `vllm serve` takes until it is healthy and until its first token, in turns: natively, restored, with each step of a pool of the
start's own (`--pool FILE`) alone and with all of them, and in processes of a pool that runs already; then without bytecode, and with a checkpoint that is not in
the page cache.

In: the output of `make vllm`. DEVICE=cuda: a GPU and its driver instead of the simulated ones. Out: a line about each round, tables of wall and processor seconds, the
phases of the starts, and a last line: PASS if the aims are met, else short. Fails: exit code 1 if a start is not as it should be, if anything is compiled between
/health and the first token, or if the first request loads code that a native start has loaded by then (the simulated GPU's log of calls tells). On the simulated GPU,
kernels take no time: everything else is measured.
"""

import getpass
import itertools
import json
import math
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

SIMULATED = os.environ.get("DEVICE", "simulated") == "simulated"

# If this module is imported first, it undoes a step: the collector runs during imports again.
COLLECTS = "boot_collects"

# Calls of the driver that load code, and those that look up a kernel, whose code the driver may load then.
LOADS = "cuModuleLoad", "cuLibraryLoad", "cuLinkCreate"
LOOKUPS = "cuModuleGetFunction", "cuLibraryGetKernel"

# The path names a user, so pool.yaml, which is for all users, cannot have it. vLLM sets it before it spawns the engine core, like the variables in pool.yaml.
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


# The fields in which the checkpoint's configuration differs from MODEL's: 1.9 GB in two layers and two embeddings.
CHECKPOINT = {"hidden_size": 4096, "intermediate_size": 11008, "num_attention_heads": 32, "num_key_value_heads": 32, "head_dim": 128, "vocab_size": 64000}


class Boot(Server):
    def __init__(self, args, **model):
        super().__init__(args, "V1", **model)  # the other runner counts sampled tokens in a kernel, and kernels are no-ops here
        self.socket = self.path("pool/socket")
        # The modules that each of the two processes imports until the server is healthy, except those whose import begins work.
        read = "import json, sys, yaml; json.dump(yaml.safe_load(open(sys.argv[1])), sys.stdout)"
        text = subprocess.check_output([args.python, "-c", read, POOL])
        self.api_server, self.engine_core = json.loads(text)["engines"]
        self.more = {}  # variables of the start at hand
        self.first = {}  # the code that the first request loads, by way

    def variables(self):
        """The environment, the same for all starts: imports look through the whole of it."""
        env = self.environment("restored")
        del env["SIMGPU_CALL_LOG"]
        if not SIMULATED:
            del env["LD_LIBRARY_PATH"]
        return env | {"CUDART_STACK": "clean", "MEDUSA_CACHE": self.path("medusa")} | self.more

    def compiled(self):
        """The files in the caches of compilers."""
        env = self.variables()
        caches = env["VLLM_CACHE_ROOT"], env["TRITON_CACHE_DIR"], INDUCTOR["TORCHINDUCTOR_CACHE_DIR"], env["MEDUSA_CACHE"]
        return {os.path.join(folder, name) for cache in caches for folder, _, names in os.walk(cache) for name in names if not name.endswith(".lock")}

    def token(self):
        """How many tokens a request for one gets. Their values do not matter here."""
        body = {"model": self.model, "prompt": [1, 2, 3], "max_tokens": 1, "temperature": 0, "ignore_eos": True}
        url = f"http://127.0.0.1:{self.port}/v1/completions"
        request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["usage"]["completion_tokens"]
        except urllib.error.HTTPError as e:
            stop("first token:", e, e.read().decode())

    def timed(self, way, round, command):
        """Seconds from the start of the command to the first answer of /health and to the first token, and processor seconds to the first token."""
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
        """Notes the code that the first request loads: libraries by the number of their kernels, and the kernels that are looked up."""
        with open(calls, "rb") as log:
            log.seek(logged)
            after = [fields[3:] for line in log if len(fields := line.decode(errors="replace").rstrip("\n").split("\t")) > 4]
        if not any(call[0].startswith(("cuLaunchKernel", "cuGraphLaunch")) for call in after):
            stop(way, "the log has no launch for the request")
        found = {(call[0], field) for call in after if call[0].startswith(LOADS + LOOKUPS) for field in call[2:] if field.startswith(("kernels=", "kernel="))}
        if len(found) < len([call for call in after if call[0].startswith(LOADS)]):
            stop(way, "loads that the log does not describe:", after)
        print(f"{way}: {len(after)} calls of the driver after /health, which load", ", ".join(sorted(f"{field:.120}" for _, field in found)) or "nothing", flush=True)
        self.first[way] = found

    def restored(self, way, round, *options, pool=()):
        status = self.path(f"{way}-{round}.json")
        options = [*options, *(["--pool", pool] if pool else [])]
        took = self.timed(way, round, [self.medusa, "restore", *options, "--status", status, self.artifact, "--", *self.command])
        told = self.status(status)
        if (told["status"], told.get("graphs")) != ("restored", GRAPHS) or told.get("pool", "") != ("yes" if pool else ""):
            stop(way, told)
        with open(self.path(f"{way}-{round}.output"), encoding="utf-8") as out:
            cold = [line for line in out if "medusa: " in line and "medusa: restored " not in line]
        if cold:
            stop(way, *cold)
        return took

    def beside(self, way, round, *options, api_server=None, engine_core=None):
        """A restored start with a pool of its own."""
        modules = [given if given is not None else all["modules"] for given, all in ((api_server, self.api_server), (engine_core, self.engine_core))]
        return self.restored(way, round, *options, pool=self.config("beside.yaml", *modules))

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


def write_checkpoint(folder):
    """A model's folder, with zeros for weights."""
    with open(os.path.join(MODEL, "config.json"), encoding="utf-8") as f:
        config = json.load(f) | CHECKPOINT
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
        json.dump(config, f)
    hidden, inner, words = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    shapes = {"model.embed_tokens": (words, hidden), "lm_head": (words, hidden), "model.norm": (hidden,)}
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        shapes |= {at + f"self_attn.{name}_proj": (hidden, hidden) for name in "qkvo"}
        shapes |= {at + "mlp.gate_proj": (inner, hidden), at + "mlp.up_proj": (inner, hidden), at + "mlp.down_proj": (hidden, inner)}
        shapes |= {at + "input_layernorm": (hidden,), at + "post_attention_layernorm": (hidden,)}
    tensors, end = {}, 0
    for name, shape in shapes.items():
        begin, end = end, end + 2 * math.prod(shape)
        tensors[name + ".weight"] = {"dtype": "BF16", "shape": shape, "data_offsets": [begin, end]}
    head = json.dumps(tensors).encode()
    with open(os.path.join(folder, "model.safetensors"), "wb") as f:
        f.write(len(head).to_bytes(8, "little") + head)
        while end > 0:
            end -= f.write(bytes(min(end, 1 << 20)))
        os.fsync(f.fileno())
    return folder


def forget(folder):
    """Takes a checkpoint out of the page cache."""
    with open(os.path.join(folder, "model.safetensors"), "rb") as f:
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def ratios(took, way, what):
    """Each round's share of the native start."""
    return [start[what] / native[what] for start, native in zip(took[way], took["native"])]


def table(what, took):
    print(f"\n| {what} | /health | of native | first token | of native | processors | of native |\n|---|---|---|---|---|---|---|")
    for way, starts in took.items():
        cells = []
        for column, seconds in enumerate(zip(*starts)):
            r = ratios(took, way, column)
            cells += [f"{statistics.median(seconds):.1f} s ({min(seconds):.1f} to {max(seconds):.1f})", f"{statistics.median(r):.2f} ({min(r):.2f} to {max(r):.2f})"]
        print("|", way, "|", " | ".join(cells), "|")


def phases(what, server, ways, rounds):
    """Median seconds of each phase of the engine core. The native ones come from the artifact's own recording."""
    took = {}
    inspected = json.loads(subprocess.check_output([server.medusa, "inspect", "-o", "json", server.artifact]))
    for stage in next(s for s in inspected["stages"] if s["Mode"] == "native")["Stages"]:
        took[stage["Name"]] = {"native": [stage["Seconds"]]}
    for way in ways:
        for round in range(rounds):
            told = server.status(server.path(f"{way}-{round}.json"))
            for phase, after in itertools.pairwise(told["phases"]):
                took.setdefault(phase["name"], {}).setdefault(way, []).append(after["began"] - phase["began"])
            took.setdefault("of these Medusa", {}).setdefault(way, []).append(told["milliseconds"] / 1000)
    print(f"\n| {what}: phase | native |", " | ".join(way.removeprefix(what + " ") for way in ways), "|\n|---|---|" + "---|" * len(ways))
    for name, by in took.items():
        print(f"| {name} |", " | ".join(f"{statistics.median(by[way]):.2f} s" if way in by else "-" for way in ("native", *ways)), "|")


def look(server):
    """Compares the code that the first request loads in a native and a restored start, by the log of calls."""
    for way, command in (("native", server.command), ("restored", [server.medusa, "restore", server.artifact, "--", *server.command])):
        server.more = {"SIMGPU_CALL_LOG": server.path(way + ".calls")}
        server.timed(way, "logged", command)
    if more := server.first["restored"] - server.first["native"]:
        stop("the first request loads what that of a native start does not:", more)
    server.more = {}


def main():
    rounds = int(os.environ.get("ROUNDS") or ROUNDS)
    args = arguments()
    server = Boot(args)
    server.artifact = server.materialize()
    if SIMULATED:
        look(server)
    folder = write_checkpoint(os.path.join(os.path.abspath(args.work), "boot-weights"))
    disk = Boot(args, name="boot", model=folder, loading="safetensors", share="0.5")
    disk.artifact = disk.materialize()
    with open(server.path(COLLECTS + ".py"), "w", encoding="utf-8") as f:
        f.write("import gc\n\ngc.set_threshold(700, 10, 10)\n")
    bare = {"PYTHONPYCACHEPREFIX": server.path("bytecode"), "PYTHONDONTWRITEBYTECODE": "1"}

    def native(engine, way, round):
        return engine.timed(way, round, engine.command)

    def collecting(engine, *start):
        engine.more = {"PYTHONPATH": engine.folder}
        modules = [[COLLECTS, *e["modules"]] for e in (engine.api_server, engine.engine_core)]
        return engine.beside(*start, api_server=modules[0], engine_core=modules[1])

    groups = {
        "start": (server, {}, {
            "native": native,
            "restored": Boot.restored,
            "core beside": lambda engine, *start: engine.beside(*start, api_server=[]),
            "collector on": collecting,
            "beside": Boot.beside,
            "pool": lambda engine, *start: engine.restored(*start, pool=engine.socket),
        }),
        "without bytecode": (server, bare, {"native": native, "beside": Boot.beside}),
        "checkpoint on disk": (disk, {}, {
            "native": native,
            "beside": Boot.beside,
            "weights beside": lambda engine, *start: engine.beside(*start, "--weights", folder),
        }),
    }  # fmt: skip
    took = {what: {way: [] for way in ways} for what, (_, _, ways) in groups.items()}
    pool = server.pool()
    try:
        for round in range(rounds):
            # The pool is idle while the others are measured.
            imported = server.ready()
            for what, (engine, more, ways) in groups.items():
                for way, start in ways.items():
                    engine.more = more
                    forget(folder)
                    took[what][way].append(start(engine, way if what == "start" else f"{what} {way}", round))
                print(f"round {round}: {what}:", ", ".join(f"{way} {s[-1][0]:.1f} s, {s[-1][1]:.1f} s" for way, s in took[what].items()), flush=True)
    finally:
        pool.terminate()
        pool.wait(60)
    for what in groups:
        table(what, took[what])
    phases("start", server, [way for way in groups["start"][2] if way != "native"], rounds)
    phases("checkpoint on disk", disk, ["checkpoint on disk beside", "checkpoint on disk weights beside"], rounds)
    print()
    for e in imported:
        print(f"{e['name']}: imported in {e['counts']['import_seconds']:.1f} s, {e['pss'] / 2**20:.0f} MiB")
    reached = {(way, what): statistics.median(ratios(took["start"], way, i)) for way in AIMS for i, what in enumerate(("healthy", "token"))}
    met = all(ratio <= AIMS[way] for (way, _), ratio in reached.items())
    print(
        f"bench-boot: {'PASS' if met else 'short'} device={'simulated' if SIMULATED else 'cuda'} rounds={rounds}",
        *(f"{way}_{what}={ratio:.2f}/{AIMS[way]}" for (way, what), ratio in reached.items()),
    )


if __name__ == "__main__":
    sys.exit(main())
