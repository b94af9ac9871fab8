"""Graphs that are hard to verify or to keep, one at a time, as an engine. Steps of `make gpu-kit`.

In: the name of a case. Out: one JSON object, like engine.py. Fails: as torch does.

    moe      a router picks experts, whose results are added up by float atomics
    atomics  many floats are added into few places, in any order
    stale    a graph reads metadata that was allocated while capturing and that the engine rewrites before each replay
    freed    after ready the engine frees memory that the graph refers to
    lost     after ready the device's context is lost
"""

import argparse
import ctypes
import json

import torch

import medusa_graphs as medusa
from medusa_graphs.ranges import Memory
from medusa_graphs.session import GraphInvalid

WIDTH, ROWS, EXPERTS = 64, 32, 8


class Case:
    """The work that a case captures, and its use of the graph once the engine is ready."""

    def __init__(self, session):
        self.session = session
        make = lambda *shape, dtype=torch.float32: torch.empty(shape, dtype=dtype, device="cuda")
        self.x, self.out, self.weight = make(ROWS, WIDTH), make(ROWS, WIDTH), make(EXPERTS, WIDTH, WIDTH)
        session.tensor("x", self.x, medusa.INPUT)
        session.tensor("out", self.out, medusa.OUTPUT)
        session.tensor("weight", self.weight, medusa.WEIGHT)

    def load(self):
        r = torch.Generator().manual_seed(1)
        self.x.copy_(torch.randn(self.x.shape, generator=r))
        self.weight.copy_(torch.randn(self.weight.shape, generator=r))
        self.out.copy_(torch.zeros(self.out.shape))

    def before_capture(self, capture):
        pass

    def serve(self, graph):
        graph.replay()
        torch.cuda.synchronize()
        return self.out.cpu().numpy().tobytes()


class Moe(Case):
    def run(self):
        scores = torch.softmax(self.x @ self.weight[0, :, :EXPERTS], -1)
        share, expert = torch.topk(scores, 2, -1)
        rows = torch.arange(ROWS, device="cuda").repeat_interleave(2)
        each = torch.bmm(self.x[rows][:, None], self.weight[expert.reshape(-1)])[:, 0]
        self.out.copy_(self.x).index_add_(0, rows.remainder(4), each * share.reshape(-1, 1))


class Atomics(Case):
    def run(self):
        places = torch.arange(ROWS * WIDTH, device="cuda").remainder(7)
        self.out.copy_(self.x).view(-1).scatter_add_(0, places, self.x.view(-1))


class Stale(Case):
    def before_capture(self, capture):
        def allocate():
            self.order = torch.empty(ROWS, dtype=torch.int64, device="cuda")
            self.order.copy_(torch.arange(ROWS))

        capture.warm_up(allocate)

    def run(self):
        if not hasattr(self, "order"):
            self.order = torch.arange(ROWS, device="cuda")
        self.out.copy_(self.x[self.order])

    def serve(self, graph):
        if not self.session.restoring:
            self.order.copy_(torch.arange(ROWS).flip(0))
        return super().serve(graph)


class Freed(Case):
    """Its memory is the driver's own, not the allocator's, which would keep it mapped."""

    def __init__(self, session):
        super().__init__(session)
        self.driver, self.address = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64()
        if result := self.driver.cuMemAlloc_v2(ctypes.byref(self.address), ctypes.c_size_t(self.x.nbytes)):
            raise RuntimeError(f"cuMemAlloc_v2: {result}")
        self.extra = torch.as_tensor(Memory(self.address.value, self.x.nbytes), device="cuda").view(torch.float32).view(self.x.shape)
        session.tensor("extra", self.extra, medusa.INPUT)

    def load(self):
        super().load()
        self.extra.copy_(torch.ones(self.extra.shape))

    def run(self):
        self.out.copy_(self.x + self.extra)

    def free(self):
        torch.cuda.synchronize()
        return self.driver.cuMemFree_v2(self.address)


CASES = {"moe": Moe, "atomics": Atomics, "stale": Stale, "freed": Freed, "lost": Freed}


def lose(case, graph):
    """Reads a row that does not exist, so that torch's kernel ends the context."""
    try:
        case.x[torch.tensor([1 << 40], device="cuda")]
        torch.cuda.synchronize()
    except RuntimeError:
        pass
    graph.replay()  # which raises the context's error and ends the process


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("case", choices=CASES)
    name = p.parse_args().case
    torch.cuda.set_device(0)
    session, restored = medusa.Session(), None
    free, total = torch.cuda.mem_get_info()
    session.identify({"engine.name": "torch-special", "engine.args": name})
    session.phase("structure")
    case = CASES[name](session)
    session.phase("kv_cache")
    if session.kv_bytes() is None:
        medusa.kv_profile(1 << 28, total, free, torch.cuda.mem_get_info()[0], 0, 0.9, 1)
    session.phase("weights")
    case.load()
    for _ in session.triggers():
        session.trigger(case.run)
    if session.restoring:
        session.phase("capture")
        restored = session.graphs()
    if restored is None:
        with medusa.Capture(session) as capture:
            case.before_capture(capture)
            capture.warm_up(case.run)
            graph = capture.graph(name, 1, case.run)
    else:
        graph = restored[0]
    session.ready(lambda: case.serve(graph))
    case.serve(graph)
    said = {"device": torch.cuda.get_device_name(0), "start": "restored" if restored else "native", "graphs": 1}
    if name == "freed":
        said["freed"] = case.free()
        try:
            if restored:
                graph.replay()
        except GraphInvalid as e:
            said["invalid"] = str(e)
    if name == "lost" and restored:
        lose(case, graph)
    print(json.dumps(said))
    session.close()


if __name__ == "__main__":
    with torch.inference_mode():
        main()
