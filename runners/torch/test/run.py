"""make test-torch: a PyTorch engine's graphs, captured natively, materialized, restored in a new process, and compared.

In: the engine's command line, and what `make torch` built (tools, runtime, stand-ins, simulated GPU). Out: a line about
each step, and last the line with the counts. Fails: exit code 1 where a step fails, a graph was not restored, or anything
differs.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys

from compare import Comparison, read

HERE = os.path.dirname(os.path.abspath(__file__))
ENGINE = os.path.join(HERE, "..", "engine.py")
PROGRAMS = os.path.join(HERE, "..", "programs.py")


def arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--python", required=True, help="interpreter of the virtual environment that holds torch")
    p.add_argument("--libraries", required=True, help="folder of the runtime and the stand-ins")
    p.add_argument("--build", required=True, help="folder that holds medusa, lib/ and simulated/")
    p.add_argument("--work", required=True, help="folder for what the runs leave")
    p.add_argument("--programs", type=int, help="compare that many random programs in place of the Llama engine")
    p.add_argument("--seed", default="1", help="of the random programs")
    return p.parse_args()


class Runs:
    def __init__(self, args, name, engine):
        self.args = args
        self.folder = os.path.join(os.path.abspath(args.work), name)
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)
        self.engine = [sys.executable, os.path.join(HERE, "engine_run.py"), self.folder, os.path.abspath(args.python), *engine]

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, name, command, extra=()):
        build = os.path.abspath(self.args.build)
        env = dict(os.environ)
        env.update(
            LD_LIBRARY_PATH=os.path.abspath(self.args.libraries) + ":" + os.path.join(build, "simulated"),
            PYTHONPATH=os.path.join(HERE, "..", "python") if name == "native" else "",
            SIMGPU_MACHINE_CODE="no-op",
        )
        env.update(extra)
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"test-torch: {name}: exit code {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
        print(f"test-torch: {name}: done", flush=True)
        return done.stdout

    def engine_run(self, name, before=()):
        return json.loads(self.run(name, [*before, *self.engine]).splitlines()[-1])

    def graphs(self, name):
        return read(self.path(name + ".truth"), self.path(name + ".places"))


def main():
    args = arguments()
    medusa = os.path.join(os.path.abspath(args.build), "medusa")
    if args.programs:
        runs = Runs(args, "programs", [PROGRAMS, "--programs", str(args.programs), "--seed", args.seed])
    else:
        runs = Runs(args, "llama", [ENGINE, "--batch-sizes", "1,2,4,8", "--tokens", "2"])
    artifact = runs.path(os.path.basename(runs.folder) + ".medusa")
    native = runs.engine_run("native")
    print(runs.run("materialize", [medusa, "materialize", "-o", artifact, "--", *runs.engine]))
    restored = runs.engine_run("restored", [medusa, "restore", "--strict", artifact, "--"])
    c = Comparison()
    if native["start"] != "native" or restored["start"] != "restored":
        c.differ("starts:", native["start"], restored["start"])
    if native["graphs"] != restored["graphs"] or not native["graphs"]:
        c.differ("graphs of the engines:", native["graphs"], restored["graphs"])
    c.run([runs.graphs(n) for n in ("record-a", "record-b", "native", "check-native")], runs.graphs("restore"))
    for d in c.differences[:20]:
        print("difference:", d)
    print(f"pointers={c.pointers} constant_bytes={c.constants} varying_bytes={c.unwritten}")
    print("third-party kernels run as no-ops here: what is compared is what was captured, not what it computes")
    verdict = "FAIL" if c.differences or not c.third_party or not c.pointers else "PASS"
    device = "simulated" if restored["device"] == "Simulated GPU" else restored["device"]
    if args.programs:
        print(f"torch-programs: {c.graphs} differences: {len(c.differences)}")
        sys.exit(verdict != "PASS")
    print(
        f"test-torch: {verdict} device={device} torch={restored['torch']} graphs={c.graphs} nodes={c.nodes} "
        f"third_party_kernels={c.third_party} differences={len(c.differences)}"
    )
    sys.exit(verdict != "PASS")


if __name__ == "__main__":
    main()
