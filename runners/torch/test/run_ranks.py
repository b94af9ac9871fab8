"""make test-torch-ranks: an engine of several ranks, tensor parallel, natively, materialized, restored in new processes, and compared.

In: the output of `make torch`, numbers of ranks. Out: a line about each step, and last the line with the counts. Fails: exit code 1 if a step
fails, a rank was not restored, or anything differs.
"""

import argparse
import os
import shutil
import subprocess
import sys

import ranks

HERE = os.path.dirname(os.path.abspath(__file__))
TORCH = os.path.dirname(HERE)
ENGINE = ["--batch-sizes", "1,2,4", "--tokens", "2"]
SECONDS = 280  # for a start; materialize makes five


def parser(text):
    p = argparse.ArgumentParser(description=text.splitlines()[0])
    p.add_argument("--python", required=True, help="interpreter of the virtual environment that holds torch")
    p.add_argument("--libraries", required=True, help="folder of the runtime and the stand-ins")
    p.add_argument("--build", required=True, help="folder that holds medusa, lib/ and simulated/")
    p.add_argument("--work", required=True, help="folder for what the runs leave")
    p.add_argument("--ranks", default="2,4")
    p.add_argument("--alone", action="store_true", help="restore from an artifact that was made with one device")
    return p


class Case:
    def __init__(self, args, count, folder=""):
        self.args, self.count, self.name = args, count, f"{count} ranks"
        self.folder = os.path.join(os.path.abspath(args.work), folder or f"ranks-{count}")
        self.medusa = os.path.join(os.path.abspath(args.build), "medusa")
        shutil.rmtree(self.folder, ignore_errors=True)
        for rank in range(count):
            os.makedirs(os.path.join(self.folder, str(rank)))
        python = os.path.abspath(args.python)
        self.engine, self.ranked = [python, os.path.join(TORCH, "engine.py"), *ENGINE], [python, os.path.join(TORCH, "parallel.py"), str(count)]
        self.plain = [*self.ranked, *self.engine]
        self.command = self.leaving(self.folder)

    def leaving(self, folder):
        """The engine's command. Each rank leaves its files in a folder of its own."""
        return [*self.ranked, sys.executable, os.path.join(HERE, "engine_run.py"), os.path.join(folder, "{rank}"), *self.engine]

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, step, command, starts=1, **variables):
        build = os.path.abspath(self.args.build)
        env = dict(
            os.environ,
            LD_LIBRARY_PATH=os.path.abspath(self.args.libraries) + ":" + os.path.join(build, "simulated"),
            PYTHONPATH=os.path.join(TORCH, "python") if step == "native" else "",
            CUDART_STACK="clean" if step == "native" else "addresses",
            HF_HUB_OFFLINE="1",
            SIMGPU_MACHINE_CODE="no-op",
            SIMGPU_DEVICES=str(self.count),
        )
        done = subprocess.run(command, env=env | variables, capture_output=True, text=True, check=False, timeout=starts * SECONDS)
        with open(self.path(step + ".output"), "w", encoding="utf-8") as f:
            f.write(done.stdout + done.stderr)
        if done.returncode:
            sys.exit(f"test-torch-ranks: {self.name}: {step}: exit code {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
        print(f"test-torch-ranks: {self.name}: {step}: done", flush=True)
        return done.stdout

    def materialize(self):
        artifact = self.path("engine.medusa")
        self.run("materialize", [self.medusa, "materialize", "-o", artifact, "--", *self.command], starts=5)
        return artifact

    def materialize_alone(self):
        """As materialize, with one device. Ranks that run together have left the native files."""
        self.materialize()
        artifact, folder = self.path("alone.medusa"), self.path("alone")
        for rank in range(self.count):
            os.makedirs(os.path.join(folder, str(rank)))
        command = [self.medusa, "materialize", "--ranks-alone", str(self.count), "-o", artifact, "--", *self.leaving(folder)]
        self.run("alone", command, starts=5 * self.count, SIMGPU_DEVICES="1")
        return artifact

    def files(self, rank, run):
        path = os.path.join(self.folder, os.path.dirname(run), str(rank), os.path.basename(run))
        return ranks.Files(path + ".truth", path + ".places")

    def compare(self):
        native = ranks.reports(self.run("native", self.command))
        artifact = self.materialize_alone() if self.args.alone else self.materialize()
        status = self.path("restored.json")
        restored = ranks.reports(self.run("restored", [self.medusa, "restore", "--strict", "--check", "full", "--status", status, artifact, "--", *self.command]))
        runs = (*ranks.NATIVE, "restore", *(ranks.ALONE if self.args.alone else ()))
        rank_of = ranks.compare_alone if self.args.alone else ranks.compare
        c, calls = ranks.all_ranks(self.name, [{run: self.files(rank, run) for run in runs} for rank in range(self.count)], rank_of)
        ranks.told(c, self.name, native, restored, self.count)
        ranks.placed(c, self.name, status, self.count, "relocated" if self.args.alone else "exact")
        return c, calls


def main():
    args = parser(__doc__).parse_args()
    counts = [int(n) for n in args.ranks.split(",")]
    done = [Case(args, n).compare() for n in counts]
    ranks.finish("test-torch-ranks", args.ranks + (" alone" if args.alone else ""), done)


if __name__ == "__main__":
    main()
