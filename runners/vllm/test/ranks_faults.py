"""make test-vllm-ranks-faults: a rank of vLLM fails at a stage of its restored start, and all ranks start natively.

In: as ranks_run.py. Out: a line about each start, and last the line with the counts. Fails: exit code 1 if a rank is restored or differs from a native
start, if no reason is given, or reasons name another rank or several causes, if it takes too long, or if a process or a file of Medusa's is left.
"""

import glob
import os
import re
import shutil
import time

import ranks_run
from ranks_run import HERE, Case, ranks
from run import stop

# Medusa may handle an error itself, and the other ranks agree. Death and silence end the engine.
FAULTS = [
    ("identify", "error"),
    ("identify", "death"),
    ("kv_bytes", "error"),
    ("kv_bytes", "silence"),
    ("trigger", "death"),
    ("graphs", "error"),
    ("graphs", "silence"),
    ("make", "error"),
    ("make", "death"),
    ("ready", "death"),
]
RANK_SECONDS, CALL_SECONDS = 6, 4  # how long ranks wait for each other, when they agree and in the communicator
TORCH_SECONDS = 30  # likewise while torch makes its process groups; by default 10 minutes
ENDS = 30  # seconds that vLLM may take to notice that a worker is gone, and to end
NATIVE_LINE = re.compile(r"medusa: native start: (.*)")


def reasons(output, rank):
    """The causes that ranks give, each once. The engine's end is left out: it follows the cause that its ranks give, if they give one. Second, the blamed ranks."""
    found, blamed = set(), set()
    for line in NATIVE_LINE.findall(output):
        code, _, text = line.partition(": ")
        blamed |= {int(n) for n in re.findall(r"^rank (\d+) (?:starts natively|did not reach)", text)}
        text = re.sub(rf"^rank {rank} starts natively: ", "", text)
        if code != "engine_ended":
            found.add(f"{code}: {text}")
    return found, blamed


def left(mark, folder):
    """Processes with a variable, and files of Medusa's in a folder."""
    found = [name for name in os.listdir(folder) if "medusa" in name]
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            with open(path, "rb") as f:
                if f"\0{mark}\0".encode() in b"\0" + f.read():
                    found.append(os.path.dirname(path))
        except OSError:  # it has ended, or is another user's
            pass
    return found


class Test:
    def __init__(self, case):
        self.case, self.rank, self.slowest = case, case.count - 1, 0.0
        began = time.monotonic()
        self.native = ranks.reports(case.run("native", case.plain, PYTHONPATH=""))
        self.takes = time.monotonic() - began
        self.artifact = case.materialize()

    def fail(self, call, kind):
        name = f"{call} {kind}"
        step = name.replace(" ", "-")
        copy, tmp = self.case.path(step + ".medusa"), self.case.path(step + ".tmp")
        shutil.copy(self.artifact, copy)
        os.makedirs(tmp)
        command = [self.case.medusa, "restore", "--check", "full", copy, "--", *self.case.plain]
        began = time.monotonic()
        out = self.case.run(
            step, command, starts=2, PYTHONPATH=os.path.join(HERE, "failing"), TMPDIR=tmp, FAILING=f"{self.rank} {call} {kind}", FAULT_MARK=self.case.folder + step,
            MEDUSA_RANK_SECONDS=str(RANK_SECONDS), NCCL_STANDIN_SECONDS=str(CALL_SECONDS),
        )  # fmt: skip
        took = time.monotonic() - began
        self.slowest = max(self.slowest, took)
        started = ranks.reports(out)
        with open(self.case.path(step + ".output"), encoding="utf-8") as f:
            output = f.read()
        found, blamed = reasons(output, self.rank)
        for what in ("start", "keys", "launches", "steps"):
            values = [[report[what] for report in of] for of in (self.native, started)]
            if values[0] != values[1]:
                stop(f"ranks: {name}: {what}:", *values)
        if not NATIVE_LINE.search(output) or len(found) > 1 or blamed - {self.rank}:
            stop(f"ranks: {name}: reasons:", found, "ranks blamed:", blamed)
        limit = 2 * self.takes + RANK_SECONDS + 2 * CALL_SECONDS + TORCH_SECONDS + ENDS
        if took > limit:
            stop(f"ranks: {name}: took {took:.0f} s, more than {limit:.0f}")
        if remains := left(f"FAULT_MARK={self.case.folder}{step}", tmp):
            stop(f"ranks: {name}: left:", remains)
        print(f"test-vllm-ranks: {name}: all native after {took:.0f} s: {', '.join(found) or 'the engine ended'}", flush=True)


def main():
    args = ranks_run.arguments()
    args.set += [f"distributed_timeout_seconds={TORCH_SECONDS}", f"cpu_distributed_timeout_seconds={TORCH_SECONDS}"]
    test = Test(Case(args, args.models, int(args.ranks)))
    for call, kind in FAULTS:
        test.fail(call, kind)
    print(f"test-vllm-ranks: PASS device=simulated ranks={args.ranks} faults={len(FAULTS)} slowest={test.slowest:.0f}")


if __name__ == "__main__":
    main()
