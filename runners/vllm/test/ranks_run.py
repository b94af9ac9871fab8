"""make test-vllm-ranks: vLLM with several ranks, tensor parallel, natively, materialized, restored in new processes, and compared.

In: the output of `make vllm`, numbers of ranks. Out: a line about each step, and last the line with the counts. Fails: exit code 1 if a step fails, a
rank was not restored, or anything differs.
"""

import argparse
import json
import os
import sys

from run import TORCH, Engine

import ranks  # of TORCH's tests, whose folder run.py has added

HERE = os.path.dirname(os.path.abspath(__file__))
MODEL = "llama"
NCCL = ["--set", "disable_custom_all_reduce=true"]


def arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--python", required=True, help="interpreter of the virtual environment that holds vLLM")
    p.add_argument("--libraries", required=True, help="folder of the runtime and the stand-ins")
    p.add_argument("--build", required=True, help="folder that holds medusa, lib/ and simulated/")
    p.add_argument("--work", required=True, help="folder for what the runs leave")
    p.add_argument("--ranks", default="2")
    p.add_argument("--models", default=MODEL)
    p.add_argument("--nccl", action="store_true", help="without vLLM's other implementations of all-reduce, which it prefers")
    p.add_argument("--multicast", action="store_true", help="devices that NVLink connects, with multicast objects: custom all-reduce of more than 2 ranks, and symmetric memory")
    p.add_argument("--set", action="append", default=[], metavar="NAME=JSON", help="another argument of LLM")
    return p.parse_args()


class Case(Engine):
    def __init__(self, args, model, count):
        self.count = count
        engine = [os.path.abspath(args.python), os.path.join(HERE, "engine.py"), os.path.join(HERE, "models", model), *(NCCL if args.nccl else [])]
        self.plain = [*engine, "--set", f"tensor_parallel_size={count}", *(part for pair in args.set for part in ("--set", pair))]
        super().__init__(args, f"{model} {count} ranks", self.plain)
        self.command = [sys.executable, os.path.join(TORCH, "test", "engine_run.py"), self.folder, *self.plain]

    def environment(self, step):
        env = super().environment(step)
        # The text of Inductor's kernels names the rank's device, and so do the names of its files: ranks that compile at once would have each its own line table.
        env["TRITON_DISABLE_LINE_INFO"] = "1"
        del env["SIMGPU_CALL_LOG"]  # all processes would write to one file
        nccl = os.path.join(os.path.abspath(self.args.libraries), "libnccl.so.2")
        if self.args.nccl:
            env["VLLM_ALLREDUCE_USE_SYMM_MEM"] = "0"
        if self.args.multicast:
            env["SIMGPU_MULTICAST"] = "1"
        return env | {"SIMGPU_DEVICES": str(self.count), "VLLM_NCCL_SO_PATH": nccl, "TRUTH_SUFFIX": ".%p"}

    def files(self, run, rank):
        places = self.path(f"{run}.places.{rank}")
        with open(places, encoding="utf-8") as f:
            return ranks.Files(self.path(f"{run}.truth.{json.load(f)['process']}"), places)

    def compare(self):
        native = ranks.reports(self.run("native", self.command))
        artifact = self.materialize()
        status = self.path("restored.json")
        restored = ranks.reports(self.run("restored", [self.medusa, "restore", "--strict", "--check", "full", "--status", status, artifact, "--", *self.command]))
        runs = (*ranks.NATIVE, "restore")
        c, calls = ranks.all_ranks(self.name, [{run: self.files(run, rank) for run in runs} for rank in range(self.count)])
        ranks.told(c, self.name, native, restored, self.count)
        ranks.placed(c, self.name, status, self.count)
        for one, other in zip(native, restored):
            for what in ("keys", "launches", "steps", "states", "workspace"):
                if one[what] != other[what] or not one["keys"]:
                    c.differ(self.name, "rank", one["rank"], what, one[what], other[what])
            if other["launches"] != other["steps"]:
                c.differ(self.name, "rank", one["rank"], "graph launches:", other["launches"], "steps take:", other["steps"])
        return c, calls


def main():
    args = arguments()
    done = [Case(args, model, int(n)).compare() for model in args.models.split(",") for n in args.ranks.split(",")]
    ranks.finish("test-vllm-ranks", args.ranks, done)


if __name__ == "__main__":
    main()
