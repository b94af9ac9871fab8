"""A case of make test-tokens whose KV cache is elastic: one artifact serves with any part of the recorded cache, also while that changes.

In: as case.py. Out: a line about each step, and a row of counts. Fails: Failed, at the first step with another result than it has to have: a token that
is not the native one, a request that is lost, other memory than was asked for, by the device's log.
"""

import os
import re

from case import ADDRESSES, HERE, Case, contract, differing, free_port
from cases import SERVED
from options import CROWDED, PAGE_BLOCKS, flags, options

LAYERS, PAGE = 2, 2 << 20
RANGE = CROWDED // PAGE_BLOCKS * LAYERS * PAGE  # bytes of the recorded cache
PERCENT = 5, 25, 60, 100
RESIZES = 30
NEIGHBOUR = "8080M"  # of a third process, which leaves no room for all of the cache on a device of 8 GiB
# The calls of a resize. Each fails for the second layer's second page, when another page has to go back to its old state.
CALLS = "cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemUnmap"
FAILS = 4


class ElasticCase(Case):
    more, variables = (), {}

    def engine(self):
        return self.program("engine.py", "--graphs", self.graphs, "--dtype", self.dtype, "--crowd", *self.more)

    def environment(self, step, mistake):
        process = {"CUDART_STACK": "clean"} if step.startswith("native") else {"PYTHONPATH": os.path.join(HERE, "served")} if step == SERVED else {}
        # vLLM's key of compiled code contains the names of plug-ins, so they are the same in every start.
        return super().environment(step, mistake) | {"VLLM_PLUGINS": "medusa,tokens", contract.ENV_VLLM_KV: "elastic"} | process | self.variables

    def told(self, more=(), size=None, **variables):
        """Sets the arguments, the bytes of the cache and the variables of the next start."""
        kv = {} if size is None else {contract.ENV_VLLM_KV: f"elastic:{size}"}
        self.more, self.variables = more, variables | kv

    def mapped(self, step):
        """The bytes that are mapped by the device's log. They are the cache's if no other memory is mapped."""
        with open(self.path(step + ".calls"), encoding="utf-8", errors="replace") as f:
            calls = re.findall(r"\t(cuMemMap|cuMemUnmap)\tCUDA_SUCCESS\t.*?bytes=(\d+)", f.read())
        return sum(int(n) if name == "cuMemMap" else -int(n) for name, n in calls)

    def natives(self):
        """The tokens of native starts, by the part of the cache that they have."""
        tokens, row = {}, {}
        for percent in PERCENT:
            step = f"native-{percent}"
            self.told(("--blocks", str(CROWDED * percent // 100)))
            started = self.start(step)
            if not self.captures(step) or started["blocks"] != CROWDED * percent // 100:
                self.fail(f"{step}: {started['blocks']} blocks, {self.captures(step)} captures")
            tokens[str(percent)] = started["tokens"]
            row = {"vllm": started["vllm"], "reference": self.judged(started["tokens"]), "distinct": len({t for r in started["tokens"] for t in r})}
        return tokens, row

    def made(self):
        self.told(("--blocks", str(CROWDED)))
        return self.materialize()

    def part(self, percent, addresses, native):
        step, size = f"restored-{percent}-{addresses}", RANGE * percent // 100
        self.told(("--blocks", str(CROWDED)), size)
        started = self.begun(step, self.artifact, addresses)
        return self.judge(step, started, native, CROWDED * percent // 100, size)

    def judge(self, step, started, native, blocks, size):
        tokens, captures, on_device = started["tokens"], self.captures(step), self.mapped(step)
        count, different = sum(map(len, tokens)), differing(tokens, native)
        self.say(f"{step}: {started['blocks']} blocks, {count} tokens, {count - different} equal native ones, {captures} captures")
        if different or captures or started["blocks"] != blocks:
            self.fail(f"{step}: {different} tokens differ, {captures} captures, {blocks} blocks wanted")
        # At exact addresses, other memory is mapped as well.
        if step.endswith("relocate") and on_device != size:
            self.fail(f"{step}: {on_device} bytes are mapped, not {size}")
        return count

    def beside(self, native):
        """A start that gets as much memory as another process leaves."""
        step = "restored-beside-relocate"
        self.told(("--blocks", str(CROWDED)), SIMGPU_NEIGHBOUR=NEIGHBOUR)
        started = self.begun(step, self.artifact, "relocate")
        blocks = started["blocks"]
        if not PAGE_BLOCKS < blocks < CROWDED:
            self.fail(f"{step}: {blocks} of {CROWDED} blocks")
        return self.judge(step, started, native, blocks, blocks // PAGE_BLOCKS * LAYERS * PAGE)

    def resized(self, addresses):
        step = f"resized-{addresses}"
        self.told(("--blocks", str(CROWDED), "--resizes", str(RESIZES)), RANGE)
        started = self.begun(step, self.artifact, addresses)
        captures = self.captures(step)
        text = self.happened(started["seen"], step)
        if captures or (addresses == "relocate" and self.mapped(step) != started["mapped"]):
            self.fail(f"{step}: {captures} captures, the device's log has {self.mapped(step)} bytes mapped, the engine says {started['mapped']}")
        return text

    def calls(self):
        """How often a start at the least size makes each call of a resize."""
        self.told(("--blocks", str(CROWDED)), RANGE * PERCENT[0] // 100)
        self.begun("calls", self.artifact, "relocate")
        with open(self.path("calls.calls"), encoding="utf-8", errors="replace") as f:
            made = re.findall(r"\t(cuMem\w+)\t", f.read())
        return {call: made.count(call) for call in CALLS}

    def failed(self, call, before):
        step = "failed-" + call
        self.told(
            ("--blocks", str(CROWDED), "--fails"), RANGE * PERCENT[0] // 100, SIMGPU_FAIL=f"{call}:{before + FAILS}:CUDA_ERROR_OUT_OF_MEMORY"
        )
        seen = self.begun(step, self.artifact, "relocate")["seen"]
        self.say(f"{call} fails in a resize: the engine serves on with its old size, {seen['answers']} answers, 0 wrong, 0 lost")
        return seen["answers"]

    def over_http(self):
        """vLLM's own server, and its endpoint for sizes."""
        vllm, port = os.path.join(os.path.dirname(self.settings.python), "vllm"), str(free_port())
        serve = [vllm, "serve", self.checkpoint, "--host", "127.0.0.1", "--port", port, *flags(options(self.dtype, self.graphs, CROWDED, True))]
        self.told((), RANGE)
        status = self.path(SERVED + ".json")
        command = [self.settings.medusa, "restore", "--strict", "--addresses", "relocate", "--status", status, self.artifact, "--", *serve]
        out = self.output(SERVED, [*self.program("endpoint.py", port, "--"), *command])
        self.say("vllm serve: " + out.splitlines()[-1])

    def compare(self):
        step = self.kept.step
        native, row = step("natives", self.natives)
        row |= step("materialize", self.made)
        counts = [
            step(f"restored {percent} {how}", lambda p=percent, h=how: self.part(p, h, native[str(p)])) for percent in PERCENT for how in ADDRESSES
        ]
        counts.append(step("beside", lambda: self.beside(native["100"])))
        reference = [step("resized " + how, lambda h=how: self.resized(h)) for how in ADDRESSES]
        before = step("calls", self.calls)
        for call in CALLS:
            step("failed " + call, lambda c=call: self.failed(c, before[c]))
        step(SERVED, self.over_http)
        row |= {"tokens": sum(counts), "captures": 0, "changed": {}, "refused": {}, "reference": f"{row['reference']}; {reference[-1]}"}
        return row | {"identical": row["tokens"], "minutes": round(self.kept.minutes(), 1)}
