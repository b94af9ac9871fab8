"""Counts the compilations of a process.

In: none. Out: counts by kind, from the moment of the import on. Fails: never.
"""

import os
import sys

COMPILERS = ("gcc", "g++", "cc", "c++", "clang", "clang++", "nvcc", "ptxas", "ninja", "cicc")


class Compilations:
    def __init__(self):
        self.triton = 0  # kernels that Triton did not find in its cache
        self.programs = 0  # compilers that any module started, except to ask for their version
        sys.addaudithook(self.audit)

    def audit(self, event, args):
        if event == "subprocess.Popen":
            command = [args[1]] if isinstance(args[1], str) else [str(a) for a in args[1]]
            self.programs += os.path.basename(command[0]) in COMPILERS and "--version" not in command

    def watch_triton(self):
        from triton import knobs

        def listener(*, cache_hit, **_):
            self.triton += not cache_hit

        knobs.compilation.listener = listener

    def counts(self):
        """All are 0 if no code was compiled."""
        from torch._dynamo.utils import counters
        from vllm.compilation.counter import compilation_counter as vllm

        return {
            "models": vllm.num_aot_compiles,
            "pieces": vllm.num_inductor_compiles,
            "inductor_misses": counters["inductor"]["fxgraph_cache_miss"] + counters["aot_autograd"]["autograd_cache_miss"],
            "triton_kernels": self.triton,
            "programs": self.programs,
        }
