"""Warm-up and capture in a memory pool of their own.

In: the engine's decode step. Out: torch.cuda.CUDAGraph objects, and in the trace: graph labels and the allocator's block
map before and after. All that warm-up and capture allocate comes from segments of the pool, so that a restored start,
which skips both, lacks exactly those segments and the restorer makes them.
"""

import torch

from . import marks


class Capture:
    """Use as a context manager around warm-up and capture of all graphs; keep it as long as the graphs."""

    def __init__(self, session):
        self.session = session
        self.pool = torch.cuda.MemPool()
        self.stream = torch.cuda.Stream()
        self.capturing = False
        self.graphs = []

    def __enter__(self):
        self.session.phase("warmup")
        return self

    def warm_up(self, step):
        """Runs a step eagerly on the capture stream, for work that must not happen in a capture."""
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.use_mem_pool(self.pool), torch.cuda.stream(self.stream):
            step()
        self.stream.synchronize()

    def graph(self, label, batch, step):
        """Captures a step. The pool is left before torch records into it: torch refuses to enter it twice."""
        # mutant: capture phase begins once
        if not self.capturing:
            self.session.phase("capture")
            self.capturing = True
        graph = torch.cuda.CUDAGraph()
        marks.graph(label, batch)
        with torch.cuda.graph(graph, pool=self.pool.id, stream=self.stream):
            step()
        self.graphs.append(graph)
        self.session.captured.append(label)
        return graph

    def __del__(self):
        # torch reports a bug if a pool is freed before the graphs in it.
        for graph in self.graphs:
            graph.reset()

    def __exit__(self, *exc):
        torch.cuda.synchronize()
        marks.blocks()
        return False
