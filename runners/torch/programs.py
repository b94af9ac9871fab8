"""Random torch programs as an engine: each is captured as a graph of its own.

In: a seed, the number of the first program and how many. Out: one JSON object, like engine.py, with how often each kind of
step was drawn. A program is a random sequence of operations and modules over named tensors of random dtypes and shapes, in
place and not, over views, on several streams. Every kind of parameter that torch passes to its kernels is to be captured and restored. Results are
finite, and depend on inputs and state, so that a replay tells right from wrong.
"""

import argparse
import collections
import gc
import json
import random

import torch
import torch.nn.functional as F
from torch import nn

import medusa_graphs as medusa

DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
INTEGERS = [torch.int64, torch.int32, torch.int16, torch.uint8]


class Program:
    """Drawn once, so that warm-up, triggering and capture run the same operations."""

    def __init__(self, number, seed, device, streams):
        self.number = number
        r = self.random = random.Random(f"{seed}/{number}")
        self.dtype, self.integer = r.choice(DTYPES), r.choice(INTEGERS)
        self.rows, self.width = r.randint(1, 40), 8 * r.randint(1, 48)
        self.length = r.randint(4, 24)
        self.seed = r.random()
        self.device = device
        self.streams = r.sample(streams, r.randint(0, len(streams)))
        self.drawn = collections.Counter()

    def allocate(self, session):
        def make(name, shape, role, dtype=self.dtype, **bounds):
            t = torch.empty(shape, dtype=dtype, device=self.device)
            session.tensor(f"{self.number}.{name}", t, role, **bounds)
            return t

        shape = (self.rows, self.width)
        self.x, self.y = (make(name, shape, medusa.INPUT) for name in "xy")
        self.counts = make("counts", shape, medusa.INPUT, self.integer, lo=0, hi=100)
        self.index = make("index", (self.rows,), medusa.INPUT, torch.int64, lo=0, hi=self.rows, fill=medusa.DISTINCT)
        self.weight = make("weight", (self.width, self.width), medusa.WEIGHT)
        self.bias = make("bias", (self.width,), medusa.WEIGHT)
        self.state = make("state", shape, medusa.KV)
        self.out = make("out", shape, medusa.OUTPUT)
        with torch.device("meta"):
            self.modules = nn.ModuleList(self.random.choice(MODULES)(self) for _ in range(self.random.randint(1, 3)))
        self.modules = self.modules.to(self.dtype).to_empty(device=self.device).eval()
        for name, t in self.modules.state_dict().items():
            session.tensor(f"{self.number}.modules.{name}", t, medusa.WEIGHT)

    def load(self):
        r = torch.Generator().manual_seed(self.number)
        for t in [self.x, self.y, self.weight, self.bias, self.state, *self.modules.state_dict().values()]:
            t.copy_(torch.randn(t.shape, generator=r).to(t.dtype) / 8)
        self.counts.copy_(torch.randint(0, 100, self.counts.shape, generator=r).to(self.integer))
        self.index.copy_(torch.randperm(self.rows, generator=r))
        self.out.copy_(torch.zeros(self.out.shape, dtype=self.dtype))

    def run(self):
        r = random.Random(self.seed)
        main = torch.cuda.current_stream()
        before = self.x + self.state
        live = [(self.x, main), (self.y, main), (self.state, main)]
        self.drawn.clear()
        forked = []
        for _ in range(self.length):
            (a, of_a), (b, of_b) = r.choice(live), r.choice(live)
            stream = r.choice([main, *self.streams])
            if stream is not main and stream not in forked:
                forked.append(stream)
                stream.wait_stream(main)
            for other in {of_a, of_b}:
                if other is not stream:
                    stream.wait_stream(other)
            name = r.choice(list(OPERATIONS))
            with torch.cuda.stream(stream):
                live.append((tame(OPERATIONS[name](self, a, b, r)), stream))
            self.drawn.update([name, "another stream"] if stream is not main else [name])
        for stream in forked:
            main.wait_stream(stream)
        self.out.copy_(live[-1][0] + before)
        self.drawn.update(["dtype " + str(self.dtype)])


def tame(t):
    """Keeps numbers small, also after powers and norms."""
    return torch.nan_to_num(t, 0.5, 1, -1).clamp(-1, 1)


def attention(p, a, b, r):
    q, k, v = (t.view(1, len(t), -1, 8).transpose(1, 2) for t in (a, b, a))
    return F.scaled_dot_product_attention(q, k, v, is_causal=r.random() < 0.5).transpose(1, 2).reshape(len(a), -1)


def module(p, a, b, r):
    m = r.choice(list(p.modules))
    if isinstance(m, nn.Embedding):
        return m(p.index)
    if isinstance(m, nn.MultiheadAttention):
        return m(a[None], b[None], a[None], need_weights=False)[0][0]
    return m(a.view(1, *a.shape))[0] if isinstance(m, nn.GroupNorm | nn.Conv1d) else m(a)


def view_in_place(p, a, b, r):
    """Writes part of the state through a view of it."""
    start = r.randrange(p.width)
    view = r.choice([p.state[:, start:], p.state.t()[start:].t(), p.state.view(-1)[start:].view(1, -1), p.state[::2]])
    view.mul_(r.uniform(-1, 1)).add_(a[0, 0].clone())
    return p.state.clone()


def integers(p, a, b, r):
    n = p.counts * r.randint(1, 5) + a.to(p.integer)
    n = r.choice([lambda: n & 7, lambda: n | 1, lambda: n.bitwise_xor(n), lambda: n // 3, lambda: n.clamp(1, 9), lambda: (n > 2).to(n.dtype)])()
    return n.to(p.dtype) + b


def windows(p, a, b, r):
    """Overlapping and repeated elements: strides that no contiguous tensor has."""
    size = min(p.width, 8)
    return r.choice([
        lambda: a + b.unfold(1, size, 1).sum(-1).mean(1, keepdim=True),
        lambda: a + b[:1].expand_as(a),
        lambda: a + torch.as_strided(b, a.shape, (1, 1)),
        lambda: a + b[:, :1].expand(-1, p.width).contiguous(),
    ])()


OPERATIONS = {
    "add": lambda p, a, b, r: a + b,
    "scalar": lambda p, a, b, r: a * r.uniform(-2, 2) + r.randint(-3, 3),
    "alpha": lambda p, a, b, r: torch.add(a, b, alpha=r.randint(1, 9)),
    "where": lambda p, a, b, r: torch.where(a > b, a, b),
    "mask": lambda p, a, b, r: a.masked_fill(b < 0, r.uniform(-1, 1)),
    "gelu": lambda p, a, b, r: F.gelu(a, approximate=r.choice(["none", "tanh"])),
    "silu": lambda p, a, b, r: F.silu(a) * b,
    "power": lambda p, a, b, r: torch.pow(a, r.choice([2, 3, 0.5])) + b.exp(),
    "in place": lambda p, a, b, r: p.state.add_(a).clamp_(-1, 1),
    "view in place": view_in_place,
    "strided": lambda p, a, b, r: a[:, ::2].repeat_interleave(2, 1) + b,
    "transposed": lambda p, a, b, r: a.t().contiguous().t() + b.flip(1),
    "windows": windows,
    "roll": lambda p, a, b, r: torch.roll(a, r.randint(1, 5), r.randint(0, 1)),
    "pad": lambda p, a, b, r: F.pad(a, (1, 1))[:, 1:-1] + b,
    "mean": lambda p, a, b, r: a - a.mean(-1, keepdim=True),
    "column sum": lambda p, a, b, r: a + b.sum(0),
    "norm": lambda p, a, b, r: a / (1 + torch.linalg.vector_norm(b.float(), dim=-1, keepdim=True)).to(a.dtype),
    "extremes": lambda p, a, b, r: a + b.amax(-1, keepdim=True) - b.amin(),
    "softmax": lambda p, a, b, r: torch.softmax(a.float(), -1).to(a.dtype),
    "log softmax": lambda p, a, b, r: torch.log_softmax(a, r.randint(0, 1)),
    "layer norm": lambda p, a, b, r: F.layer_norm(a, (p.width,), p.bias, p.bias),
    "linear": lambda p, a, b, r: F.linear(a, p.weight, p.bias),
    "product": lambda p, a, b, r: a @ p.weight,
    "scaled product": lambda p, a, b, r: torch.addmm(b, a, p.weight, beta=r.uniform(0, 1), alpha=r.uniform(0, 1)),
    "batched": lambda p, a, b, r: torch.bmm(a.view(len(a), 1, -1), p.weight.expand(len(a), -1, -1)).view(len(a), -1),
    "einsum": lambda p, a, b, r: torch.einsum("nw,wv->nv", a, p.weight),
    "gather": lambda p, a, b, r: a[p.index],
    "gather columns": lambda p, a, b, r: a.gather(1, p.index[:, None].remainder(p.width).expand(-1, p.width)),
    "scatter": lambda p, a, b, r: p.state.index_copy_(0, p.index, b.clone()),
    "index put": lambda p, a, b, r: p.state.index_put_((p.index, p.index.remainder(p.width)), a[:, 0].clone()),
    "cat": lambda p, a, b, r: torch.cat([a, b], 1)[:, : p.width] + b,
    "stack": lambda p, a, b, r: torch.stack([a, b, a]).sum(0),
    "chunks": lambda p, a, b, r: torch.cat(a.chunk(2, 1)[::-1], 1) + b,
    "cumsum": lambda p, a, b, r: torch.cumsum(a, r.randint(0, 1)),
    "convert": lambda p, a, b, r: (a.float() ** 2).to(a.dtype),
    "integers": integers,
    "arg": lambda p, a, b, r: a + torch.argmax(b, -1, keepdim=True),
    "top": lambda p, a, b, r: a + torch.topk(b, min(4, p.width), -1).values.sum(-1, keepdim=True),
    "sort": lambda p, a, b, r: torch.sort(a, -1).values,
    "triangle": lambda p, a, b, r: a.tril() + b.triu(1),
    "range": lambda p, a, b, r: a + torch.arange(p.width, device=a.device, dtype=a.dtype),
    "attention": attention,
    "module": module,
    "fill": lambda p, a, b, r: a + torch.zeros_like(b) + torch.full_like(b, r.uniform(0, 1)),
}

MODULES = [
    lambda p: nn.Linear(p.width, p.width, bias=p.random.random() < 0.5),
    lambda p: nn.Sequential(nn.Linear(p.width, 2 * p.width), p.random.choice([nn.ReLU, nn.SiLU, nn.GELU])(), nn.Linear(2 * p.width, p.width)),
    lambda p: nn.Sequential(nn.Linear(p.width, 2 * p.width), nn.GLU()),
    lambda p: nn.LayerNorm(p.width, bias=p.random.random() < 0.5),
    lambda p: nn.RMSNorm(p.width),
    lambda p: nn.GroupNorm(1, p.rows),
    lambda p: nn.Conv1d(p.rows, p.rows, 3, padding=1),
    lambda p: nn.Embedding(p.rows, p.width),
    lambda p: nn.MultiheadAttention(p.width, p.width // 8, batch_first=True),
    lambda p: nn.PReLU(),
]


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--first", type=int, default=1)
    p.add_argument("--programs", type=int, default=20)
    p.add_argument("--seed", default="1")
    p.add_argument("--places", help="file that receives where named tensors and restored graphs lie")
    args = p.parse_args()
    device = torch.device("cuda", 0)
    torch.cuda.set_device(device)
    session, graphs, restored = medusa.Session(), [], None
    free, total = torch.cuda.mem_get_info()
    session.identify({"engine.name": "torch-programs", "engine.args": f"{args.first} {args.programs} {args.seed}"})
    session.phase("structure")
    # All programs share the streams: torch keeps a workspace of megabytes for each stream that a product ran on.
    streams = [torch.cuda.Stream(device, priority=p) for p in (0, 0, -1)]
    programs = {i: Program(i, args.seed, device, streams) for i in range(args.first, args.first + args.programs)}
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
    gc.freeze()  # torch collects garbage before each capture, which takes its time with the tensors of all programs
    if session.restoring:
        session.phase("capture")
        restored = session.graphs()
    if restored is None:
        with medusa.Capture(session) as capture:
            for i, program in programs.items():
                capture.warm_up(program.run)
                graphs.append(capture.graph(f"program-{i}", i, program.run))
    if args.places:
        with open(args.places, "w", encoding="utf-8") as f:
            json.dump(session.places(), f)
    session.ready()
    for graph in restored or graphs:
        graph.replay()
    torch.cuda.synchronize()
    print(json.dumps({
        "device": torch.cuda.get_device_name(0),
        "torch": torch.__version__,
        "start": "restored" if restored else "native",
        "graphs": len(restored or graphs),
        "drawn": sum((program.drawn for program in programs.values()), collections.Counter()),
    }))
    session.close()


if __name__ == "__main__":
    with torch.inference_mode():
        main()
