"""A small PyTorch engine with the stages of a cold start, to be materialized and restored.

In: a shape and batch sizes on the command line, Medusa's environment. Out: one JSON object: how it started, the seconds of
each stage, tokens decoded greedily at every batch size. Fails: with the exception, exit code 1.

Modes: native (profile, warm-up, capture), kv-only (the cache's size is given), no-graphs (decodes eagerly), and, under
`medusa restore`, restored (KV cache before weights, triggering layers while they are copied).
"""

import argparse
import dataclasses
import hashlib
import json
import time

import torch

import medusa
from llama import LlamaModel, Shape


def arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--mode", choices=["native", "kv-only", "no-graphs"], default="native")
    p.add_argument("--batch-sizes", default="1,2,4,8")
    p.add_argument("--max-length", type=int, default=128)
    p.add_argument("--dtype", choices=["bfloat16", "float16", "float32"], default="bfloat16")
    p.add_argument("--kv-bytes", type=int, help="size of the KV cache; default: from the profile forward")
    p.add_argument("--utilization", type=float, default=0.5)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--tokens", type=int, default=8)
    p.add_argument("--places", help="file that receives where named tensors and restored graphs lie")
    for f in dataclasses.fields(Shape):
        p.add_argument("--" + f.name.replace("_", "-"), type=f.type, default=f.default)
    return p.parse_args()


class Engine:
    def __init__(self, args):
        self.args = args
        self.shape = Shape(**{f.name: getattr(args, f.name) for f in dataclasses.fields(Shape)})
        self.batches = sorted({int(b) for b in args.batch_sizes.split(",")})
        self.dtype = getattr(torch, args.dtype)
        self.device = torch.device("cuda", 0)
        self.session = medusa.Session()
        self.outputs = {}
        self.stages, self.graphs, self.capture, self.restored = {}, {}, None, False

    def stage(self, name, run):
        began = time.perf_counter()
        run()
        torch.cuda.synchronize()
        self.stages[name] = self.stages.get(name, 0) + time.perf_counter() - began

    def start(self):
        torch.cuda.set_device(self.device)
        self.free_before, _ = torch.cuda.mem_get_info()
        s = self.session
        s.identify(self.identity())
        s.phase("structure")
        self.stage("structure", self.structure)
        size = self.args.kv_bytes or s.kv_bytes()
        if size is None and self.args.mode == "kv-only":
            raise SystemExit("engine: mode kv-only needs --kv-bytes")
        if size is not None:
            s.phase("kv_cache")
            self.stage("kv_cache", lambda: self.make_cache(size))
        s.phase("weights")
        self.stage("weights", self.load)
        s.phase("tokenizer")
        if size is None:
            s.phase("kv_cache")
            self.stage("kv_cache", lambda: self.make_cache(self.profile()))
        self.stage("capture", self.make_graphs)
        if self.args.places:
            with open(self.args.places, "w", encoding="utf-8") as f:
                json.dump(s.places(), f)
        s.ready(lambda: json.dumps(self.serve()).encode())

    def identity(self):
        config = json.dumps(dataclasses.asdict(self.shape), sort_keys=True).encode()
        return {
            "engine.name": "torch-llama",
            "engine.framework": "torch " + torch.__version__,
            "cuda.version": torch.version.cuda,
            "engine.args": f"{self.args.mode} {self.batches} {self.args.max_length} {self.dtype}",
            "model.config": "sha256:" + hashlib.sha256(config).hexdigest(),
            "model.checkpoint": f"random, seed {self.args.seed}",
        }

    def structure(self):
        """Memory for weights, static inputs and the output; nothing is filled yet."""
        with torch.device("meta"):
            self.model = LlamaModel(self.shape, self.args.max_length)
        self.model = self.model.to(self.dtype).to_empty(device=self.device).eval()
        largest = self.batches[-1]
        self.tokens = torch.empty(largest, dtype=torch.int64, device=self.device)
        self.positions = torch.empty(largest, dtype=torch.int64, device=self.device)
        self.next = torch.empty(largest, dtype=torch.int64, device=self.device)
        for name, t in self.model.state_dict().items():
            self.session.tensor(name, t, medusa.WEIGHT)
        self.session.tensor("tokens", self.tokens, medusa.INPUT, lo=0, hi=self.shape.vocab_size)
        self.session.tensor("positions", self.positions, medusa.INPUT, lo=0, hi=self.args.max_length)
        self.session.tensor("next", self.next, medusa.OUTPUT)

    def make_cache(self, size):
        """One (keys, values) pair a layer, with a row for each sequence of the largest batch."""
        s, rows = self.shape, self.batches[-1]
        token = 2 * s.num_hidden_layers * s.num_key_value_heads * s.head_dim * self.dtype.itemsize
        if rows * self.args.max_length * token > size:
            raise SystemExit(f"engine: a KV cache of {size} bytes does not hold {rows} sequences of {self.args.max_length}")
        dims = (rows, self.args.max_length, s.num_key_value_heads, s.head_dim)
        self.cache = [
            tuple(torch.empty(dims, dtype=self.dtype, device=self.device) for _ in range(2))
            for _ in range(s.num_hidden_layers)
        ]
        for i, pair in enumerate(self.cache):
            for name, t in zip(("keys", "values"), pair):
                self.session.tensor(f"cache.{i}.{name}", t, medusa.KV)

    def load(self):
        """Copies the weights. The triggering layers run first: what they compute is thrown away."""
        torch.manual_seed(self.args.seed)
        if self.args.mode == "native":
            for batch in self.session.triggers():
                self.session.trigger(lambda: self.step(batch, layers=1))
        source = LlamaModel(self.shape, self.args.max_length).to(self.dtype).state_dict()
        for name, t in self.model.state_dict().items():
            t.copy_(source[name])
        for t in (self.tokens, self.positions, self.next):
            t.copy_(torch.zeros(t.shape, dtype=t.dtype))
        for pair in getattr(self, "cache", []):
            for t in pair:
                t.copy_(torch.zeros(t.shape, dtype=t.dtype))

    def profile(self):
        """The largest forward there will be, over a cache of its own that goes; then the rest is the cache's."""
        rows, length = self.batches[-1], self.args.max_length
        torch.cuda.reset_peak_memory_stats()
        resident = torch.cuda.memory_allocated()
        self.make_cache(1 << 62)
        tokens = torch.zeros((rows, length), dtype=torch.int64).to(self.device)
        positions = torch.arange(length).expand(rows, length).contiguous().to(self.device)
        self.model(tokens, positions, self.cache)
        peak = torch.cuda.max_memory_allocated() - resident
        del self.cache, tokens, positions
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        free, total = torch.cuda.mem_get_info()
        size = int(total * self.args.utilization) - (total - free) - peak
        medusa.kv_profile(size, total, self.free_before, free, peak, self.args.utilization, rows * length)
        return size

    def step(self, batch, layers=None):
        """One decode step over the first rows of the static inputs."""
        out = self.model(self.tokens[:batch, None], self.positions[:batch, None], self.cache, layers)
        self.next[:batch].copy_(out)
        return out

    def make_graphs(self):
        if self.args.mode == "no-graphs":
            self.session.phase("warmup")
            return
        if self.session.restoring:
            self.session.phase("capture")
            restored = self.session.graphs()
            if restored is not None:
                self.graphs, self.restored = restored, True
                for batch in self.batches:
                    self.outputs[batch] = self.session.restored_tensor(f"out.{batch}", (batch,), torch.int64)
                return
        with medusa.Capture(self.session) as self.capture:
            for batch in reversed(self.batches):
                self.capture.warm_up(lambda: self.step(batch))
                self.graphs[batch] = self.capture.graph(f"decode-{batch}", batch, lambda: self.captured(batch))

    def captured(self, batch):
        """The step as a graph holds it. Its own output is allocated inside of the capture, and kept."""
        self.outputs[batch] = self.step(batch)
        self.session.tensor(f"out.{batch}", self.outputs[batch], medusa.OUTPUT)

    def decode(self, batch):
        if batch in self.graphs:
            self.graphs[batch].replay()
        else:
            self.step(batch)

    def serve(self):
        """Greedy tokens from fixed first tokens, at every batch size."""
        out = {}
        for batch in self.batches:
            self.tokens.copy_(torch.arange(self.batches[-1]) % self.shape.vocab_size)
            rows = []
            for position in range(self.args.tokens):
                self.positions.copy_(torch.full((self.batches[-1],), position))
                self.decode(batch)
                token = self.next[:batch].cpu()
                rows.append(token.tolist())
                self.tokens[:batch].copy_(token)
            out[batch] = rows
        return out


def main():
    engine = Engine(arguments())
    with torch.inference_mode():
        engine.start()
        tokens = engine.serve()
        torch.cuda.synchronize()
    print(json.dumps({
        "device": torch.cuda.get_device_name(0),
        "torch": torch.__version__,
        "start": "restored" if engine.restored else engine.args.mode,
        "graphs": len(engine.graphs),
        "stages": {k: round(v, 6) for k, v in engine.stages.items()},
        "tokens": tokens,
    }))
    engine.session.close()


if __name__ == "__main__":
    main()
