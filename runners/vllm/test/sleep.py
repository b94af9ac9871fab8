"""make test-vllm-sleep: vLLM sleeps at both levels and wakes, stock and restored; its device memory asleep, and the time to wake.

In: the output of `make vllm`, and the kinds of engines (--kinds V2,lora). Out: a line about each step, and last the line with the counts. Fails: exit code 1 if a restored
engine captures, serves a step without a graph or with another one than before, or has more memory asleep than stock vLLM; and if it uses graphs that it must not use.
"""

import argparse
import os
import statistics
import sys

from features import EAGLE, LORA
from run import HERE, Engine, arguments, stop

CYCLES = 20
# By name: the model runner, the mode of graphs, and further arguments.
KINDS = {
    "V2": ("V2", "FULL_DECODE_ONLY"),
    "V1": ("V1", "FULL_AND_PIECEWISE"),
    "lora": ("V2", "FULL_DECODE_ONLY", *LORA),
    "draft": ("V2", "FULL_DECODE_ONLY", EAGLE),
}
MORE_ASLEEP = {"V1": 2 << 20, "lora": 2 << 20}  # bytes over stock's: one segment of torch's allocator
DROPPED = "medusa: restored graphs are no longer used: "
# The fault during the first sleep, and the reason why graphs are dropped, or None if they are used again.
FAULTS = (
    ("tags", None),  # out of order
    ("take", "wake graphs: allocate graph-owned"),
    ("spoil", "check memory that stays unchanged"),
)


class Sleeper(Engine):
    def __init__(self, args, kind):
        runner, graphs, *more = KINDS[kind]
        self.kind = kind
        python, model = os.path.abspath(args.python), os.path.join(HERE, "models", "llama")
        command = [python, os.path.join(HERE, "sleeper.py"), model, "--backend", "FLASH_ATTN", "--graphs", graphs]
        for setting in ("enable_sleep_mode=true", *more):
            command += ["--set", setting]
        super().__init__(args, f"sleep {kind} {graphs}", command, runner)

    def restored(self, step, artifact, *extra):
        return self.start(step, [self.medusa, "restore", "--strict", artifact, "--"], extra)

    def expect(self, step, what, good, *seen):
        if not good:
            stop(self.name, step, what, *seen)

    def check(self, step, start, found, graphs):
        self.expect(step, "start:", found["start"] == start, found["start"])
        self.expect(step, "cycles:", len(found["cycles"]) == CYCLES)
        for i, c in enumerate(found["cycles"]):
            self.expect(step, f"graphs after sleep {i}:", c["keys"] == found["keys"] and len(c["keys"]) == graphs, c["keys"])
            self.expect(step, f"launches after sleep {i}:", c["launches"] == found["steps"], c["launches"], found["steps"])

    def compare(self):
        """Returns the number of graphs."""
        stock, artifact = self.start("native", extra=["--cycles", str(CYCLES)]), self.materialize()
        graphs = len(stock["keys"])
        self.check("native", "native", stock, graphs)
        ours = self.restored("restored", artifact, "--cycles", str(CYCLES))
        self.check("restored", "restored", ours, graphs)
        calls = [name for name, _ in self.log("restored")]
        made = sum(name.startswith("cuGraphInstantiate") for name in calls)
        self.expect("restored", "captures:", not any(name.startswith("cuStreamBeginCapture") for name in calls))
        self.expect("restored", "graphs made:", made == graphs * (1 + CYCLES), made)
        for level in 1, 2:
            of = [[c for c in found["cycles"] if c["level"] == level] for found in (stock, ours)]
            asleep = [max(c["asleep"] for c in cycles) for cycles in of]
            times = [[round(statistics.median(c[part] for c in cycles)) for part in ("woke", "checked", "first")] for cycles in of]
            self.expect("restored", f"bytes asleep at level {level}:", asleep[1] <= asleep[0] + MORE_ASLEEP.get(self.kind, 0), *asleep)
            print(
                f"test-vllm-sleep: {self.name} level={level} bytes_asleep={asleep[1]} stock_bytes_asleep={asleep[0]} "
                f"wake,check,first_request_ms={times[1]} stock={times[0]} (on a simulated GPU)"
            )
        for fault, why in FAULTS:
            self.fault(artifact, fault, why)
        return graphs

    def fault(self, artifact, fault, why):
        found = self.restored(fault, artifact, "--cycles", "2", "--" + fault)
        with open(self.path(fault + ".output"), encoding="utf-8") as out:
            lines = [line for line in out if DROPPED in line]
        launches = [c["launches"] for c in found["cycles"]]
        self.expect(fault, "lines:", len(lines) == (why is not None) and all(why in line for line in lines), lines)
        self.expect(fault, "launches:", launches == [0 if why else found["steps"]] * 2, launches)


def main():
    p = argparse.ArgumentParser(add_help=False)
    p.add_argument("--kinds", default=",".join(KINDS))
    own, sys.argv[1:] = p.parse_known_args()
    args, kinds = arguments(), own.kinds.split(",")
    graphs = sum(Sleeper(args, kind).compare() for kind in kinds)
    print(f"test-vllm-sleep: PASS device=simulated engines={own.kinds} cycles={CYCLES * len(kinds)} graphs={graphs} faults={len(FAULTS) * len(kinds)}")


if __name__ == "__main__":
    main()
