"""make test-vllm: vLLM's own start on the simulated GPU: natively, materialized, restored in a new process, and compared.

In: the models of models/, and the output of `make vllm`. Out: a line about each step, and last the line with the counts. Each case is stored once it is
compared. A case that was shown before is not run again if the files that it depends on are the same (sources.py).
Fails: exit code 1 if a step fails, a graph was not restored, or anything differs.
"""

import argparse
import concurrent.futures
import functools
import itertools
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..")
TORCH = os.path.join(HERE, "..", "..", "torch")
sys.path.insert(0, os.path.join(TORCH, "test"))

import features  # noqa: E402
import results  # noqa: E402
import sources  # noqa: E402
import state  # noqa: E402
from compare import Comparison, read  # noqa: E402

PROCESSES = "record-a", "record-b", "native", "check-native"  # that captured graphs
NATIVE = PROCESSES.index("native")
REQUESTS = "requests"  # the mark of engine.py after which launches serve requests: warm-up and profiling launch graphs, too
LISTED = "changes.txt"  # changes of captures that a restored start lacks, or makes otherwise
SECONDS = 900  # for each start of the engine, of which materialize makes five


def arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--python", required=True, help="interpreter of the virtual environment that holds vLLM")
    p.add_argument("--libraries", required=True, help="folder of the runtime and the stand-ins")
    p.add_argument("--build", required=True, help="folder that holds medusa, lib/ and simulated/")
    p.add_argument("--work", required=True, help="folder for what the runs leave")
    p.add_argument("--at-once", type=int, default=2, help="starts that may run side by side; each takes a processor and 1.5 GB")
    p.add_argument("--models", default="llama,qwen3,mistral,qwen2-moe,opt,gpt-neox")
    p.add_argument("--backends", default="FLASH_ATTN,TRITON_ATTN", help="each for the first model, the first for the others")
    p.add_argument("--runners", default="V2,V1", help="model runners, likewise")
    p.add_argument("--graphs", default="FULL_DECODE_ONLY", help="vLLM's cudagraph_mode of these cases")
    p.add_argument("--features", nargs="?", const=" ", help="the cases of features.py instead, or those of them that have these words")
    p.add_argument("--every", action="store_true", help="each model with each backend, runner and mode")
    p.add_argument("--results", help="file that receives what each case has shown (results.py of runners/torch); default: in the folder of --work")
    p.add_argument("--commit", default="", help="what the sources are, if they have no changes of their own")
    p.add_argument("--pieces", default="FULL_AND_PIECEWISE,PIECEWISE", help="vLLM's modes for the first model compiled, each with both runners")
    return p.parse_args()


def stop(*what):
    print("test-vllm: FAIL", *what)
    sys.exit(1)


def listed(runner):
    """The patterns for a model runner."""
    with open(os.path.join(HERE, LISTED), encoding="utf-8") as f:
        lines = [line.split() for line in f if line.strip() and not line.startswith("#")]
    # mutant: changes that a model runner may leave out
    return [pattern for *runners, pattern in lines if not runners or runner in runners]


@functools.cache
def installed(python):
    """The release of vLLM that the interpreter finds."""
    command = [python, "-c", "from importlib.metadata import version; print(version('vllm'))"]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def launches(log, labels):
    """The launches in a call log after the mark, by label. A handle that no graph has stays a handle."""
    found = None
    for line in log:
        fields = line.rstrip("\n").split("\t")
        if fields[0] == "mark":
            found = [] if fields[1] == REQUESTS else found
        elif found is not None and len(fields) > 4 and fields[3].startswith("cuGraphLaunch"):
            handle = next(f[len("exec=") :] for f in fields[5:] if f.startswith("exec="))
            found.append(labels.get(int(handle, 16), handle))
    return found


class Engine:
    """An engine's command, and starts of it whose files lie in one folder."""

    variables: dict = {}

    def __init__(self, args, name, command, runner="V2", folder=""):
        self.args, self.name, self.command, self.runner = args, name, command, runner
        self.folder = os.path.join(os.path.abspath(args.work), folder or re.sub(r"[^\w.=-]+", "-", name))
        self.medusa = os.path.join(os.path.abspath(args.build), "medusa")
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def environment(self, step):
        build = os.path.abspath(self.args.build)
        return dict(
            os.environ,
            LD_LIBRARY_PATH=os.path.abspath(self.args.libraries) + ":" + os.path.join(build, "simulated"),
            PYTHONPATH=os.path.join(build, "lib", "python") if step == "native" else "",
            # Unwritten bytes are live addresses in all processes but the native one. So a word that points nowhere in the native process is no pointer.
            CUDART_STACK="clean" if step == "native" else "addresses",
            SIMGPU_MACHINE_CODE="no-op",
            SIMGPU_CALL_LOG=self.path(step + ".calls"),
            VLLM_ENABLE_V1_MULTIPROCESSING="0",
            VLLM_USE_FLASHINFER_SAMPLER="0",
            VLLM_USE_V2_MODEL_RUNNER=str(int(self.runner == "V2")),
            VLLM_NO_USAGE_STATS="1",
            # Each case has its own: Inductor chooses a kernel's form by time. Two cases that compile at once would use each other's choice from the next start on.
            VLLM_CACHE_ROOT=self.path("cache"),
            TORCHINDUCTOR_CACHE_DIR=self.path("inductor"),
            # All cases share it: Triton finds code by its source, which has one form.
            TRITON_CACHE_DIR=os.path.join(os.path.abspath(self.args.work), "triton"),
            HF_HUB_OFFLINE="1",
        )

    def run(self, step, command, starts=1, fails=None, **variables):
        """The command's output. fails: it has to fail, with this in its output."""
        env = self.environment(step) | self.variables | variables
        try:
            done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=starts * SECONDS)
        except subprocess.TimeoutExpired:
            stop(f"{self.name}: {step}: no end after {starts * SECONDS} seconds")
        with open(self.path(step + ".output"), "w", encoding="utf-8") as f:
            f.write(done.stdout + done.stderr)
        if (fails is None and done.returncode) or (fails and not (done.returncode and fails in done.stderr)):
            stop(f"{self.name}: {step}: exit code {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
        print(f"test-vllm: {self.name}: {step}: done", flush=True)
        return done.stdout

    def start(self, step, before=(), extra=(), **variables):
        out = self.run(step, [*before, *self.command, *extra], **variables)
        return json.loads([line for line in out.splitlines() if line.startswith('{"device"')][-1])

    def materialize(self):
        artifact = self.path("model.medusa")
        self.run("materialize", [self.medusa, "materialize", "-o", artifact, "--", *self.command], starts=5)
        return artifact

    def log(self, step):
        """The calls of a process: function, and the rest of the line."""
        with open(self.path(step + ".calls"), encoding="utf-8", errors="replace") as f:
            for line in f:
                fields = line.rstrip("\n").split("\t")
                if len(fields) > 4:
                    yield fields[3], fields[5:]


class Case(Engine):
    """One model with one attention backend, one model runner and one of vLLM's modes, further arguments of LLM, NAME=JSON, and variables of the environment."""

    def __init__(self, args, model, backend, runner="V2", graphs="FULL_DECODE_ONLY", *settings, folder=""):
        engine = [os.path.abspath(args.python), os.path.join(HERE, "engine.py"), os.path.join(HERE, "models", model)]
        self.variables = dict(setting.split("=", 1) for setting in settings if setting.split("=", 1)[0].isupper())
        arguments = [setting for setting in settings if not setting.split("=", 1)[0].isupper()]
        self.plain = [*engine, "--backend", backend, "--graphs", graphs, *(f"--set={argument}" for argument in arguments)]
        super().__init__(args, " ".join([model, backend, runner, graphs, *settings]), self.plain, runner, folder)
        self.compiled, self.adapters = graphs.endswith("PIECEWISE"), "enable_lora=true" in settings
        self.command = [sys.executable, os.path.join(TORCH, "test", "engine_run.py"), self.folder, *self.plain]
        os.makedirs(self.path("cache"))
        os.symlink(self.known_models(), self.path(os.path.join("cache", "modelinfos")))

    def known_models(self):
        """The folder of vLLM's findings about classes of models, each made in a process of its own. All cases share it."""
        known = os.path.join(os.path.abspath(self.args.work), "modelinfos-" + installed(self.args.python))
        os.makedirs(known, exist_ok=True)
        return known

    def graphs(self, name):
        return read(self.path(name + ".truth"), self.path(name + ".places"))

    def calls(self, step, name):
        """How often a process called a driver function, in any of its versions."""
        return sum(function.startswith(name) for function, _ in self.log(step))

    def full_forwards(self, step, tokens):
        """How many kernels were launched for as many tokens as a batch may have, of the kernels with a block for each token: vLLM's, torch's
        layer norms, and reductions that Inductor made."""
        kinds = "kernel=_ZN4vllm", "kernel=triton_per_", "kernel=triton_red_"
        return sum(
            any(f.startswith(kinds) or (f.startswith("kernel=_ZN2at") and "layer_norm_kernel" in f) for f in facts) and any(f.startswith(f"grid={tokens},") for f in facts)
            for _, facts in self.log(step)
        )

    def launched(self, step, name):
        """The labels of the graphs that a process launched for requests, in order: the process's truth has the handle of each graph."""
        labels = {g.handle: label for label, g in self.graphs(name).items()}
        with open(self.path(step + ".calls"), encoding="utf-8", errors="replace") as f:
            return launches(f, labels)

    def results(self, printed, name):
        """By key, the places and the form of the pieces' results."""
        memory = list(self.graphs(name).values())[-1].memory  # the pool grows from graph to graph
        return {key: [((kind, *form), memory.place(at)) for kind, at, *form in found] for key, found in printed["results"].items()}

    def compare_results(self, c, native, restored):
        """Results have to lie at the same place in the same allocation: the one to which the graphs' own pointers lead."""
        for key in sorted(native.keys() | restored.keys()):
            forms = [[form for form, _ in found.get(key, [])] for found in (native, restored)]
            if forms[0] != forms[1]:
                c.differ(self.name, "results of piece", key, *forms)
                continue
            for (_, at), (_, place) in zip(native[key], restored[key]):
                c.place(f"{self.name} results of piece {key}", NATIVE, at, place)

    def starts(self):
        """The output of the native and the restored start. The native one comes second: a start that compiles may choose other forms of kernels, by time, than all
        later ones, which find the code in the caches."""
        artifact = self.materialize()
        native = self.start("native")
        return native, self.start("restored", [self.medusa, "restore", "--strict", "--status", self.path("status.json"), artifact, "--"])

    def compare(self, c, native, restored):
        if (native["start"], restored["start"]) != ("native", "restored"):
            c.differ(self.name, "starts:", native["start"], restored["start"])
        if native["keys"] != restored["keys"] or not native["keys"]:
            c.differ(self.name, "graph keys:", native["keys"], restored["keys"])
        if native["workspace"] != restored["workspace"]:
            c.differ(self.name, "bytes of workspace:", native["workspace"], restored["workspace"])
        for start in (native, restored):
            if start["launches"] != start["steps"]:
                c.differ(self.name, "graph launches:", start["launches"], "steps take:", start["steps"])
            if start["adapted"] != (start["steps"] if self.adapters else {}):
                c.differ(self.name, "graph launches with an adapter:", start["adapted"], "steps take:", start["steps"])
        if native["states"] != restored["states"] or bool(native["states"]) != (self.runner == "V2"):
            c.differ(self.name, "states built for captures:", native["states"], restored["states"])
        for path, pair in state.lost(native["changes"], restored["changes"], listed(self.runner)).items():
            c.differ(self.name, "unlisted change of the captures in the worker's state:", path, *pair)
        captures = [self.calls(s, "cuStreamBeginCapture") for s in ("native", "restored")]
        # The V1 runner's profile forward captures some graphs to measure their size.
        if captures[0] < len(native["keys"]) or captures[1]:
            c.differ(self.name, "captures:", *captures)
        full = [self.full_forwards(s, native["max_tokens"]) for s in ("native", "restored")]
        if not full[0] or full[1]:
            c.differ(self.name, "kernels of forwards of", native["max_tokens"], "tokens in the call logs:", *full)
        launched = [self.launched(*s) for s in (("native", "native"), ("restored", "restore"))]
        if launched[0] != launched[1] or len(launched[1] or []) != (1 + self.adapters) * sum(restored["steps"].values()):
            c.differ(self.name, "launches of graphs in the call logs:", *launched)
        if self.adapters and sum("loras=0" not in label for label in launched[0]) != sum(restored["steps"].values()):
            c.differ(self.name, "launches of graphs with adapters:", launched[0])
        left = self.results(native, "native"), self.results(restored, "restore")
        if bool(left[0]) != self.compiled:
            c.differ(self.name, "pieces:", len(left[0]))
        c.pairs = {}
        c.run([self.graphs(n) for n in PROCESSES], self.graphs("restore"))
        self.compare_results(c, *left)
        print(f"test-vllm: {self.name}: compared: {c.graphs} graphs and {len(c.differences)} differences so far", flush=True)


def chosen(args):
    """Model, attention backend, model runner and mode of each case, and its further arguments."""
    if args.features:
        return [case for case in features.CASES if all(word in " ".join(case) for word in args.features.split())]
    models, backends, runners = args.models.split(","), args.backends.split(","), args.runners.split(",")
    pieces = [mode for mode in args.pieces.split(",") if mode]
    # mutant: every combination
    if args.every:
        return list(itertools.product(models, backends, runners, [args.graphs, *pieces]))
    first = models[0], backends[0], runners[0]
    others = [(models[0], b, runners[0]) for b in backends[1:]] + [(models[0], backends[0], r) for r in runners[1:]]
    eager = [(*case, args.graphs) for case in [first, *others, *((m, *first[1:]) for m in models[1:])]]
    return eager + [(*first[:2], r, mode) for mode in pieces for r in runners]


def draft_model(case):
    """The folder of a case's draft model, if it has one of its own."""
    settings = [json.loads(argument.split("=", 1)[1]) for argument in case if argument.startswith("speculative_config=")]
    return [s["model"] for s in settings if "model" in s]


def main():
    args = arguments()
    path, c = args.results or os.path.join(args.work, "results.json"), Comparison()
    wanted = {" ".join(case): case for case in chosen(args)}
    release = installed(args.python)
    keys = {name: sources.key(ROOT, release, case[0], *draft_model(case)) for name, case in wanted.items()}
    rows = results.shown(path, keys.get)
    for name, row in rows.items():
        print(f"test-vllm: {name}: shown before by {row['commit']}", flush=True)
    cases = [Case(args, *case) for name, case in wanted.items() if name not in rows]
    with concurrent.futures.ThreadPoolExecutor(args.at_once) as pool:
        for case, (native, restored) in zip(cases, pool.map(Case.starts, cases)):
            before = results.counts(c)
            case.compare(c, native, restored)
            rows[case.name] = results.since(before, results.counts(c)) | results.own_time(case.path("status.json"))
            versions = {name: restored[name] for name in ("device", "vllm", "torch")}
            results.store(path, versions, {case.name: rows[case.name]}, commit=args.commit, key=keys[case.name])
    versions = results.versions(path)
    for d in c.differences[:20]:
        print("difference:", d)
    total = {name: sum(row[name] for row in rows.values()) for name in (*results.COUNTS, "differences")}
    print(f"pointers={total['pointers']} constant_bytes={total['constants']} varying_bytes={c.unwritten} third_party_kernels={total['third_party']}")
    print("third-party kernels run as no-ops here: what is compared is what was captured, not what it computes")
    verdict = "FAIL" if total["differences"] or not total["third_party"] or not total["pointers"] else "PASS"
    device = "simulated" if versions["device"] == "Simulated GPU" else versions["device"]
    print(
        f"test-vllm: {verdict} device={device} vllm={versions['vllm']} status=restored graphs={total['graphs']} "
        f"nodes={total['nodes']} differences={total['differences']}"
    )
    sys.exit(verdict != "PASS")


if __name__ == "__main__":
    main()
