"""make test-torch: PyTorch engines' graphs, captured natively, materialized, restored in a new process, and compared.

In: the names of engines, and the output of `make torch` (tools, runtime, stand-ins, simulated GPU). Out: a line about
each step, and last the line with the counts. Fails: exit code 1 if a step fails, a graph was not restored, or anything
differs.
"""

import argparse
import collections
import dataclasses
import json
import os
import shutil
import subprocess
import sys

import elastic
import libraries
import results
from compare import Comparison, read

HERE = os.path.dirname(os.path.abspath(__file__))
ENGINE = os.path.join(HERE, "..", "engine.py")
CHECKPOINT = os.path.join(HERE, "..", "checkpoint.py")
PROGRAMS = os.path.join(HERE, "..", "programs.py")
LIBRARIES = os.path.join(HERE, "library_engine.py")
BATCH = 250  # programs a process


def arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--python", required=True, help="interpreter of the virtual environment that holds torch")
    p.add_argument("--libraries", required=True, help="folder of the runtime and the stand-ins")
    p.add_argument("--build", required=True, help="folder that holds medusa, lib/ and simulated/")
    p.add_argument("--work", required=True, help="folder for what the runs leave")
    p.add_argument("--results", help="file that receives what each case has shown (results.py)")
    p.add_argument("--title", default="test-torch", help="first word of the last line")
    p.add_argument("--programs", type=int, help="compare that many random programs in place of models")
    p.add_argument("--only", help="this case alone")
    p.add_argument("--shapes", help="compare these presets, separated by commas, in place of the short list")
    p.add_argument("--seed", default="1", help="of the random programs")
    return p.parse_args()


class Runs:
    def __init__(self, args, case):
        self.args = args
        self.expandable = case.expandable
        self.env = {**case.environment, **({"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"} if case.expandable else {})}
        self.folder = os.path.join(os.path.abspath(args.work), case.name)
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)
        self.engine = [sys.executable, os.path.join(HERE, "engine_run.py"), self.folder, os.path.abspath(args.python), *case.engine]

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, name, command):
        build = os.path.abspath(self.args.build)
        env = dict(os.environ)
        env.update(
            LD_LIBRARY_PATH=os.path.abspath(self.args.libraries) + ":" + os.path.join(build, "simulated"),
            PYTHONPATH=os.path.join(HERE, "..", "python") if name == "native" else "",
            HF_HUB_OFFLINE="1",
            TRITON_CACHE_DIR=self.path("triton"),
            SIMGPU_MACHINE_CODE="no-op",
            **self.env,
        )
        if name == "native":
            env["CUDART_STACK"] = "clean"  # a word that points nowhere in this process is no pointer in any
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{self.args.title}: {name}: exit code {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
        print(f"{self.args.title}: {os.path.basename(self.folder)}: {name}: done", flush=True)
        return done.stdout

    def engine_run(self, name, before=(), after=()):
        return json.loads(self.run(name, [*before, *self.engine, *after]).splitlines()[-1])

    def mappings(self, name):
        with open(self.path(name + ".truth"), encoding="utf-8") as f:
            return sum(line.startswith("alloc\t") and "\tvmm\t" in line for line in f)

    def kernels(self, name):
        """The plug-in's account of each kernel of the restored graphs: (how it was found, name, module)."""
        with open(self.path(name + ".places"), encoding="utf-8") as f:
            return json.load(f)["kernels"]

    def graphs(self, name):
        return read(self.path(name + ".truth"), self.path(name + ".places"), self.expandable)


@dataclasses.dataclass
class Case:
    """One engine that is to be compared."""

    name: str
    engine: list
    prepare: list | None = None  # arguments of the command that makes its files
    expandable: bool = False
    environment: dict = dataclasses.field(default_factory=dict)
    untriggered: list | None = None  # arguments with which no triggering layer runs, for one more restored start
    elastic: bool = False  # the KV cache is elastic: more starts are restored with parts of it


def compare(args, case):
    """One engine: started natively, materialized, restored in a new process. Returns the comparison, the reports of the
    native and the restored engine, and the time that Medusa itself took."""
    medusa = os.path.join(os.path.abspath(args.build), "medusa")
    runs = Runs(args, case)
    if case.prepare:
        runs.run("native", [os.path.abspath(args.python), *case.prepare])
    artifact = runs.path(case.name + ".medusa")
    native = runs.engine_run("native")
    print(runs.run("materialize", [medusa, "materialize", "-o", artifact, "--", *runs.engine]))
    status = runs.path("status.json")
    restored = runs.engine_run("restored", [medusa, "restore", "--strict", "--status", status, artifact, "--"])
    c = Comparison()
    if native["start"] != "native" or restored["start"] != "restored":
        c.differ("starts:", native["start"], restored["start"])
    if native["graphs"] != restored["graphs"] or not native["graphs"]:
        c.differ("graphs of the engines:", native["graphs"], restored["graphs"])
    graphs = runs.graphs("restore")
    c.run([runs.graphs(n) for n in ("record-a", "record-b", "native", "check-native")], graphs)
    if not c.pointers or not (c.third_party or case.untriggered):
        c.differ("nothing was compared")
    kernels = runs.kernels("restore")
    if {name for _, name, _ in kernels} != (launched := {n.facts[0] for g in graphs.values() for n in g.nodes if n.kind == "kernel"}):
        c.differ("kernels listed:", kernels, "launched:", sorted(launched))
    how = collections.Counter(how for how, _, _ in kernels)
    if not how["triggered"] or set(how) - {"loaded", "triggered"}:
        c.differ("kernels were found otherwise than in the process's own modules:", how)
    if case.untriggered:
        untriggered = runs.engine_run("untriggered", [medusa, "restore", "--strict", artifact, "--"], case.untriggered)
        c.differences += libraries.differences(native, (restored, kernels), (untriggered, runs.kernels("restore")))
    if case.elastic:
        c.differences += elastic.differences(runs, [medusa, "restore", "--strict"], artifact, restored["kv_bytes"])
    if case.expandable and not runs.mappings("native"):
        c.differ("expandable segments: torch mapped no memory")
    for d in c.differences[:20]:
        print("difference:", d)
    print(
        f"{case.name}: graphs={c.graphs} nodes={c.nodes} pointers={c.pointers} constant_bytes={c.constants} "
        f"varying_bytes={c.unwritten}",
        flush=True,
    )
    return c, native, restored, results.own_time(status)


def shape(name):
    """A preset in its own widths, with few layers. Every layer is the same, and the vocabulary makes only tables larger."""
    return [ENGINE, "--preset", name, "--layers", "2", "--vocabulary", "2000", "--batch-sizes", "1,8", "--tokens", "2"]


# 32 MiB for each stream are much to hash after each of hundreds of replays; the other cases have workspaces of that size.
SMALL_WORKSPACES = {"CUBLAS_WORKSPACE_CONFIG": ":16:8", "CUBLASLT_WORKSPACE_SIZE": "128"}


def programs(args):
    """Random programs, so many in a process: importing torch costs more than a program does. Every other process has expandable
    segments."""
    for first in range(1, args.programs + 1, BATCH):
        count = min(BATCH, args.programs + 1 - first)
        engine = [PROGRAMS, "--first", str(first), "--programs", str(count), "--seed", args.seed]
        yield Case(f"programs-{first}", engine, expandable=first // BATCH % 2 == 1, environment=SMALL_WORKSPACES)


def cases(args):
    if args.programs:
        return list(programs(args))
    if args.shapes:
        return [Case(name, shape(name)) for name in args.shapes.split(",")]
    folder = os.path.join(os.path.abspath(args.work), "checkpoint-files")
    shutil.rmtree(folder, ignore_errors=True)
    model = [ENGINE, "--model", folder, "--triton-norms", "--prompt", "to be", "--prompt", "or not", "--batch-sizes", "1,2,4,8", "--tokens", "2"]
    found = [
        Case("checkpoint", model, [CHECKPOINT, folder, "--shards", "3"]),
        Case("checkpoint-expandable", model, expandable=True),
        Case("falcon-7b", shape("falcon-7b")),
        Case("libraries", [LIBRARIES], untriggered=["--no-trigger"]),
        Case("elastic", [ENGINE, "--batch-sizes", "1,2,4", "--tokens", "2", "--kv", "elastic"], environment={"SIMGPU_MEMORY": "512M"}, elastic=True),
    ]
    return [c for c in found if args.only in (None, c.name)]


def main():
    args = arguments()
    chosen = cases(args)
    done = [compare(args, case) for case in chosen]
    if args.results:
        versions = {name: done[0][1][name] for name in ("device", "torch")}
        results.store(args.results, versions, {case.name: results.counts(c) | took for case, (c, _, _, took) in zip(chosen, done)})
    differences = sum(len(c.differences) for c, *_ in done)
    device, torch = done[0][2]["device"], done[0][2]["torch"]
    graphs, nodes, third_party = (sum(getattr(c, what) for c, *_ in done) for what in ("graphs", "nodes", "third_party"))
    print("third-party kernels run as no-ops here: what is compared is what was captured, not what it computes")
    if args.programs:
        drawn = sum((collections.Counter(native["drawn"]) for _, native, *_ in done), collections.Counter())
        print("drawn:", ", ".join(f"{what} {n}" for what, n in sorted(drawn.items())))
        print(f"torch-programs: {graphs} differences: {differences}")
    else:
        print(
            f"{args.title}: {'FAIL' if differences else 'PASS'} device={'simulated' if device == 'Simulated GPU' else device} "
            f"torch={torch} graphs={graphs} nodes={nodes} third_party_kernels={third_party} differences={differences}"
        )
    sys.exit(differences != 0)


if __name__ == "__main__":
    main()
