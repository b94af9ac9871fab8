"""A rank fails at a stage of its engine's restored start, and all ranks start natively.

In: a case (Case of run_ranks.py, or vLLM's), the calls of a session at which a rank is to fail. Out: a line about each start. Fails: exit code 1 if a rank is
restored or differs from a native start, if no reason is given, or reasons name another rank or several causes, if it takes too long, or if a process or a file
of Medusa's is left.
"""

import glob
import os
import re
import shutil
import sys
import tempfile
import time

import ranks

HERE = os.path.dirname(os.path.abspath(__file__))
RANK_SECONDS, CALL_SECONDS = 6, 4  # how long ranks wait for each other, when they agree and in the communicator
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


class Faults:
    def __init__(self, title, case, same, ends, **variables):
        """same: what a rank reports of each native start alike. ends: seconds that the engine may take to notice that a rank is gone, and to end. variables: of
        the environment of a start without Medusa."""
        self.title, self.case, self.same, self.ends, self.count, self.slowest = title, case, same, ends, 0, 0.0
        began = time.monotonic()
        self.native = ranks.reports(case.run("native", case.plain, **variables))
        self.takes = time.monotonic() - began
        self.artifact = case.materialize()

    def stop(self, *what):
        sys.exit(" ".join(map(str, (f"{self.title}: FAIL", *what))))

    def fail(self, rank, call, kind):
        self.count += 1
        name, limit = f"rank {rank} {call} {kind}", 2 * self.takes + RANK_SECONDS + 2 * CALL_SECONDS + self.ends
        took, found = self.start(rank, call, kind, f"{name} {self.count}")
        if took > limit:  # wall time depends on what else the machine does
            print(f"{self.title}: {name}: {took:.0f} s, more than {limit:.0f}: once more", flush=True)
            took, found = self.start(rank, call, kind, f"{name} {self.count} again")
        if took > limit:
            self.stop(f"{name}: took {took:.0f} s, more than {limit:.0f}")
        self.slowest = max(self.slowest, took)
        print(f"{self.title}: {name}: all native after {took:.0f} s: {', '.join(found) or 'the engine ended'}", flush=True)

    def start(self, rank, call, kind, name):
        """Seconds that the start took, and the causes that its ranks give."""
        step = name.replace(" ", "-")
        copy, mark = self.case.path(step + ".medusa"), self.case.folder + step
        shutil.copy(self.artifact, copy)
        command = [self.case.medusa, "restore", "--check", "full", copy, "--", *self.case.plain]
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as tmp:  # not the case's folder: a socket's path may have 107 characters
            began = time.monotonic()
            out = self.case.run(
                step, command, starts=2, PYTHONPATH=os.path.join(HERE, "failing"), TMPDIR=tmp, FAILING=f"{rank} {call} {kind}", FAULT_MARK=mark,
                MEDUSA_RANK_SECONDS=str(RANK_SECONDS), NCCL_STANDIN_SECONDS=str(CALL_SECONDS),
            )  # fmt: skip
            took = time.monotonic() - began
            remains = left(f"FAULT_MARK={mark}", tmp)
        started = ranks.reports(out)
        with open(self.case.path(step + ".output"), encoding="utf-8") as f:
            output = f.read()
        found, blamed = reasons(output, rank)
        for what in self.same:
            values = [[report[what] for report in of] for of in (self.native, started)]
            if values[0] != values[1]:
                self.stop(f"{name}: {what}:", *values)
        if not NATIVE_LINE.search(output) or len(found) > 1 or blamed - {rank}:
            self.stop(f"{name}: reasons:", found, "ranks blamed:", blamed)
        if remains:
            self.stop(f"{name}: left:", remains)
        os.remove(copy)
        return took, found

    def passed(self, *more):
        print(f"{self.title}: PASS device=simulated ranks={self.case.count} faults={self.count}", *more, f"slowest={self.slowest:.0f}")
