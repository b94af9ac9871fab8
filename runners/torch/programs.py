"""Random torch programs as an engine: each is captured as a graph of its own.

In: a seed and a number of programs. Out: one JSON object, like engine.py. A program is a random sequence of operations over
named tensors of random dtypes and shapes: elementwise, in-place, views, reductions, indexing, products, normalisations,
concatenations, work on a second stream. What they compute does not matter; that every kind of parameter that torch passes
to its kernels is captured and restored does.
"""

import argparse
import json
import random

import torch
import torch.nn.functional as F

import medusa

DTYPES = [torch.float32, torch.float16, torch.bfloat16]


class Program:
    """A plan drawn once, so that warm-up, triggering and capture run the same operations."""

    def __init__(self, number, seed, device):
        self.number = number
        self.random = random.Random(f"{seed}/{number}")
        r = self.random
        self.dtype = r.choice(DTYPES)
        self.rows, self.width = r.randint(1, 40), 8 * r.randint(1, 48)
        self.length = r.randint(4, 24)
        self.seed = r.random()
        self.device = device
        self.side = torch.cuda.Stream(device)

    def allocate(self, session):
        def make(name, shape, role, dtype=self.dtype, **bounds):
            t = torch.empty(shape, dtype=dtype, device=self.device)
            session.tensor(f"{self.number}.{name}", t, role, **bounds)
            return t

        self.x = make("x", (self.rows, self.width), medusa.INPUT)
        self.y = make("y", (self.rows, self.width), medusa.INPUT)
        self.index = make("index", (self.rows,), medusa.INPUT, torch.int64, lo=0, hi=self.rows)
        self.weight = make("weight", (self.width, self.width), medusa.WEIGHT)
        self.bias = make("bias", (self.width,), medusa.WEIGHT)
        self.state = make("state", (self.rows, self.width), medusa.KV)
        self.out = make("out", (self.rows, self.width), medusa.OUTPUT)

    def load(self):
        for t in (self.x, self.y, self.weight, self.bias, self.state, self.out, self.index):
            t.copy_(torch.zeros(t.shape, dtype=t.dtype))

    def run(self):
        r = random.Random(self.seed)
        forked = False
        live = [self.x, self.y, self.state]
        for _ in range(self.length):
            a, b = r.choice(live), r.choice(live)
            name = r.choice(OPERATIONS)
            if name == "side_stream" and not forked:
                forked = True
                self.side.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(self.side):
                    c = torch.tanh(a) * 2
                torch.cuda.current_stream().wait_stream(self.side)
            else:
                c = self.operation(name, a, b, r)
            live.append(c)
        self.out.copy_(live[-1])

    def operation(self, name, a, b, r):
        n = a.shape[0]
        return {
            "add": lambda: a + b,
            "scalar": lambda: a * r.uniform(-2, 2) + r.randint(-3, 3),
            "where": lambda: torch.where(a > b, a, b),
            "gelu": lambda: F.gelu(a),
            "silu": lambda: F.silu(a) * b,
            "in_place": lambda: self.state.add_(a).clamp_(-1, 1),
            "strided": lambda: a[:, ::2].repeat_interleave(2, 1) + b,
            "transposed": lambda: (a.t().contiguous().t() + b.flip(1)),
            "mean": lambda: a - a.mean(-1, keepdim=True),
            "column_sum": lambda: a + b.sum(0),
            "softmax": lambda: torch.softmax(a.float(), -1).to(a.dtype),
            "layer_norm": lambda: F.layer_norm(a, (self.width,), self.bias, self.bias),
            "linear": lambda: F.linear(a, self.weight, self.bias),
            "matmul": lambda: a @ self.weight,
            "batched": lambda: torch.bmm(a.view(n, 1, -1), self.weight.expand(n, -1, -1)).view(n, -1),
            "gather": lambda: a[self.index],
            "scatter": lambda: self.state.index_copy_(0, self.index, b.clone()),
            "cat": lambda: torch.cat([a, b], 1)[:, : self.width] + b,
            "cumsum": lambda: torch.cumsum(a, -1),
            "convert": lambda: (a.float() ** 2).to(a.dtype),
            "sort": lambda: a + torch.argmax(b, -1, keepdim=True),
            "attention": lambda: F.scaled_dot_product_attention(*(t.view(1, n, -1, 8).transpose(1, 2) for t in (a, b, a)))
            .transpose(1, 2)
            .reshape(n, -1),
            "fill": lambda: a + torch.zeros_like(b),
            "side_stream": lambda: a - b,
        }[name]()


OPERATIONS = [
    "add", "scalar", "where", "gelu", "silu", "in_place", "strided", "transposed", "mean", "column_sum", "softmax", "layer_norm",
    "linear", "matmul", "batched", "gather", "scatter", "cat", "cumsum", "convert", "sort", "attention", "fill", "side_stream",
]


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--programs", type=int, default=20)
    p.add_argument("--seed", default="1")
    p.add_argument("--places", help="file that receives where named tensors and restored graphs lie")
    args = p.parse_args()
    device = torch.device("cuda", 0)
    torch.cuda.set_device(device)
    session, graphs, restored = medusa.Session(), {}, None
    free, total = torch.cuda.mem_get_info()
    session.identify({"engine.name": "torch-programs", "engine.args": f"{args.programs} {args.seed}"})
    session.phase("structure")
    programs = {i: Program(i, args.seed, device) for i in range(1, args.programs + 1)}
    for program in programs.values():
        program.allocate(session)
    session.phase("kv_cache")
    if session.kv_bytes() is None:
        medusa.kv_profile(1 << 28, total, free, torch.cuda.mem_get_info()[0], 0, 0.9, 1)
    session.phase("weights")
    for program in programs.values():
        program.load()
    for batch in session.triggers():
        session.trigger(programs[batch].run)
    if session.restoring:
        session.phase("capture")
        restored = session.graphs()
    if restored is None:
        with medusa.Capture(session) as capture:
            for i, program in programs.items():
                capture.warm_up(program.run)
                graphs[i] = capture.graph(f"program-{i}", i, program.run)
    if args.places:
        with open(args.places, "w", encoding="utf-8") as f:
            json.dump(session.places(), f)
    session.ready()
    for graph in (restored or graphs).values():
        graph.replay()
    torch.cuda.synchronize()
    print(json.dumps({
        "device": torch.cuda.get_device_name(0),
        "torch": torch.__version__,
        "start": "restored" if restored else "native",
        "graphs": len(restored or graphs),
    }))
    session.close()


if __name__ == "__main__":
    with torch.inference_mode():
        main()
