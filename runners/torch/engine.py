"""A PyTorch engine over transformers models with the stages of a cold start, to be materialized and restored.

In: a preset or a checkpoint folder, a mode and batch sizes on the command line, Medusa's environment. Out: one JSON object:
how it started, when each stage began and ended, tokens decoded greedily at every batch size, digests of their logits.
Fails: one line and exit code 1 for a model that it cannot run, else the exception.

Modes: native (the stages one after the other), async (weights are copied beside tokenizer and KV cache), kv-only (the
cache's size is given), no-graphs (decodes eagerly), and, under `medusa restore`, restored (KV cache before weights,
triggering layers while they are copied).
"""

import argparse
import contextlib
import json
import os
import sys
import time

import torch
import transformers
from tokenizers import Tokenizer

import elastic
import medusa_graphs as medusa
import serving
from model import Model, ModelError, configuration, digest, presets
from parallel import Ranks
from weights import Checkpoint, Loader, Others, Random

# vLLM captures these by default, and so does the paper.
VLLM_BATCH_SIZES = "1,2,4," + ",".join(str(n) for n in range(8, 257, 8))


def arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    what = p.add_mutually_exclusive_group()
    what.add_argument("--preset", default="tiny", help="a shape with random weights: " + ", ".join(presets()))
    what.add_argument("--model", help="folder with config.json; where it has safetensors files or a tokenizer.json, these are loaded")
    p.add_argument("--layers", type=int, help="so many layers in place of what the configuration says")
    p.add_argument("--vocabulary", type=int, help="so many tokens in place of what the configuration says")
    p.add_argument("--mode", choices=["native", "async", "kv-only", "no-graphs"], default="native")
    p.add_argument("--batch-sizes", default=VLLM_BATCH_SIZES, help="default: vLLM's 35")
    p.add_argument("--max-length", type=int, default=128, help="tokens of the longest sequence")
    p.add_argument("--dtype", choices=["bfloat16", "float16", "float32"], default="bfloat16")
    p.add_argument("--kv-bytes", type=int, help="size of the KV cache; default: from the profile forward")
    p.add_argument("--kv", choices=["fixed", "elastic"], default="fixed", help="elastic: addresses of the recorded size, memory for a part of it")
    p.add_argument("--kv-mapped-bytes", type=int, action="append", help="memory of an elastic KV cache, repeatable: one size after another")
    p.add_argument("--utilization", type=float, default=0.9, help="share of the device's memory to use")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--tokens", type=int, default=8, help="tokens to decode at each batch size")
    p.add_argument("--replays", type=int, default=0, help="time so many decode steps at each batch size")
    p.add_argument("--prompt", action="append", help="text to continue, repeatable; default: prompts made from the seed")
    p.add_argument("--triton-norms", action="store_true", help="norms as a Triton kernel")
    p.add_argument("--compile", action="store_true", help="decode steps are compiled by torch.compile; a restored start compiles nothing")
    p.add_argument("--places", help="file that receives where named tensors and restored graphs lie")
    return p.parse_args()


class Stages:
    """When each stage began and ended, in seconds since the engine started. Stages may overlap."""

    def __init__(self):
        self.zero = time.perf_counter()
        self.list = []

    def begin(self, name):
        self.list.append({"name": name, "began": round(time.perf_counter() - self.zero, 6)})
        return self.list[-1]

    def end(self, stage):
        stage["ended"] = round(time.perf_counter() - self.zero, 6)

    @contextlib.contextmanager
    def __call__(self, name):
        stage = self.begin(name)
        yield
        torch.cuda.current_stream().synchronize()
        self.end(stage)


class Engine:
    def __init__(self, args):
        self.args = args
        self.batches = sorted({int(b) for b in args.batch_sizes.split(",")})
        self.device = torch.device("cuda", 0)
        self.dtype = getattr(torch, args.dtype)
        self.stages = Stages()
        self.session = medusa.Session()
        self.graphs, self.outputs, self.sizes, self.capture = {}, {}, [], None
        self.tokenizer = self.kv_bytes = self.length = self.cache = None
        self.restored = False
        self.ranks = Ranks()

    def start(self):
        s = self.session
        with self.stages("runtime"):
            torch.cuda.set_device(self.device)
            self.free_before, _ = torch.cuda.mem_get_info()
            self.open_model()
        s.phase("structure")
        with self.stages("structure"):
            self.structure()
        size = self.args.kv_bytes or s.kv_bytes()
        if size is None and self.args.mode == "kv-only":
            raise ModelError("mode kv-only needs --kv-bytes")
        if size is not None:
            s.phase("kv_cache")
            with self.stages("kv_cache"):
                if s.run != medusa.NONE:
                    medusa.workspaces(s)
                self.make_cache(size)
        beside = self.args.mode == "async" or size is not None
        s.phase("weights")
        weights = self.stages.begin("weights")
        self.loader.start()
        if not beside:
            self.finish_weights(weights)
        self.run_triggers()
        if not beside:
            s.phase("tokenizer")
        with self.stages("tokenizer"):
            self.load_tokenizer()
        if size is None:
            s.phase("kv_cache")
            with self.stages("kv_cache"):
                self.make_cache(self.profile())
        if beside:
            self.finish_weights(weights)
        s.provide(eager=lambda label: self.step(int(label.removeprefix("decode-"))))
        with self.stages("capture"):
            self.make_graphs()
        self.run_triggers()
        if self.args.places:
            with open(self.args.places, "w", encoding="utf-8") as f:
                json.dump(s.places(), f)
        s.ready(lambda: json.dumps(serving.serve(self)).encode())
        if self.cache:
            self.stretch()

    def stretch(self):
        """Maps the memory of an elastic KV cache, once the graphs are there and their verification is over."""
        room = self.session.kv_room()
        asked, *self.sizes = self.args.kv_mapped_bytes or [self.kv_bytes]
        self.cache.stretch(min(asked, self.kv_bytes if room is None else room))

    def open_model(self):
        """The model's description, before anything is allocated."""
        a = self.args
        self.config = configuration(a.preset, a.model, a.layers, a.vocabulary)
        if a.model and Checkpoint.found(a.model):
            self.source = Checkpoint(a.model, self.dtype, self.ranks.part)
        else:
            self.source = Random(a.seed, self.dtype)
        if self.ranks.count > 1 and (reason := self.ranks.share(self.config)):
            raise ModelError(f"share model: {reason}")
        if self.session.run == medusa.NONE:
            return
        self.session.identify({
            "engine.name": "torch",
            "engine.framework": f"torch {torch.__version__} transformers {transformers.__version__}",
            "cuda.version": torch.version.cuda,
            "engine.args": f"{a.mode} {self.batches} {a.max_length} {self.dtype}" + self.kernels_factor() + self.kv_factor(),
            "model.config": digest(self.config),
        } | self.weights_factor())

    def weights_factor(self):
        """What the identity says of the weights' contents."""
        told = self.session.weights
        if told == medusa.WEIGHTS_OTHER:
            self.source = Others(self.source)
            return {"model.checkpoint": "other"}
        return {"model.checkpoint": self.source.identity} if told == medusa.WEIGHTS_COUNT else {}

    def kernels_factor(self):
        return (" triton norms" if self.args.triton_norms else "") + (" compiled" if self.args.compile else "")

    def kv_factor(self):
        if self.args.kv == "fixed":
            return ""
        self.session.elastic(0, 0)
        return " kv=elastic"

    def structure(self):
        """Makes the memory for weights, static inputs and outputs, and the loader of the weights."""
        if self.ranks.count > 1:
            self.ranks.connect(medusa.Communicators(self.session), medusa.communicator())
        self.model = m = Model(self.config, self.dtype, self.batches[-1], self.device, self.args.kv == "elastic")
        if self.ranks.count > 1:
            self.ranks.add_up(m.net)
        if self.args.triton_norms:
            import triton_norm  # not every engine has Triton

            if not triton_norm.replace(m.net):
                raise ModelError("--triton-norms: this model has no RMS norms")
        self.step = torch.compile(m.step, fullgraph=True, dynamic=False) if self.args.compile else m.step
        self.loader = Loader(m, self.source)
        for name, t in [*m.weights(), ("rows", m.rows)]:
            self.session.tensor(name, t, medusa.WEIGHT)
        self.session.tensor("tokens", m.tokens, medusa.INPUT, lo=0, hi=self.config.vocab_size)
        self.session.tensor("next", m.next, medusa.OUTPUT)
        self.session.tensor("logits", m.logits, medusa.OUTPUT)

    def make_cache(self, size):
        """A row for each sequence of the largest batch, as long as asked for or as fits."""
        rows = self.batches[-1]
        self.length = min(self.args.max_length, size // (rows * self.model.token_bytes()))
        if self.length <= self.args.tokens:
            raise ModelError(f"a KV cache of {size} bytes does not hold {rows} sequences of {self.args.tokens + 1} tokens")
        self.kv_bytes = size
        if self.args.kv == "elastic":
            self.cache = elastic.Cache(self.model, self.length, size)
            self.session.elastic(self.cache.least, self.cache.slot * len(self.cache.ranges.all))
        for name, t in self.model.make_cache(self.length, self.cache and self.cache.tensor):
            self.session.tensor(name, t[: self.cache.usable] if self.cache else t, medusa.KV)
        if self.cache:
            self.session.tensor("slots", self.model.slots, medusa.INPUT, lo=0, hi=self.cache.usable, fill=medusa.DISTINCT)
        self.session.tensor("range", self.model.range, medusa.WEIGHT)
        self.session.tensor("positions", self.model.positions, medusa.INPUT, lo=0, hi=self.length)

    def finish_weights(self, stage):
        self.loader.wait()
        self.stages.end(stage)

    def run_triggers(self):
        for batch in self.session.triggers():
            self.session.trigger(lambda b=batch: self.trigger(b))

    def trigger(self, batch):
        """Runs the first layer, to load the modules of its kernels. Its results are thrown away."""
        self.ranks.adds = False  # other ranks may have other layers to run
        with self.model.first_layer():
            self.model.step(batch)
        self.ranks.adds = True

    def load_tokenizer(self):
        path = os.path.join(self.args.model or "", "tokenizer.json")
        if self.args.model and os.path.exists(path):
            self.tokenizer = Tokenizer.from_file(path)
        if self.args.prompt and not self.tokenizer:
            raise ModelError("--prompt needs a --model with a tokenizer.json")

    def profile(self):
        """Runs the largest possible forward over a temporary cache. The memory that is left is the KV cache's."""
        m, rows, length = self.model, self.batches[-1], self.args.max_length
        torch.cuda.reset_peak_memory_stats()
        resident = torch.cuda.memory_allocated()
        m.make_cache(length)
        cache = torch.cuda.memory_allocated() - resident
        m.prefill(torch.zeros((rows, length), dtype=torch.int64).to(self.device), torch.full((rows,), length).to(self.device))
        peak = torch.cuda.max_memory_allocated() - resident - cache
        m.drop_cache()
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        free, total = torch.cuda.mem_get_info()
        size = int(total * self.args.utilization) - (total - free) - peak
        medusa.kv_profile(size, total, self.free_before, free, peak, self.args.utilization, rows * length)
        return size

    def make_graphs(self):
        if self.args.mode == "no-graphs":
            return
        if self.session.restoring:
            self.session.phase("capture")
            restored = self.session.graphs()
            if restored is not None:
                self.graphs, self.restored = {g.batch: g for g in restored}, True
                for batch in self.batches:
                    self.outputs[batch] = self.session.restored_tensor(f"out.{batch}", (batch,), torch.int64)
                return
        with medusa.Capture(self.session) as self.capture:
            for batch in reversed(self.batches):
                self.capture.warm_up(lambda: self.step(batch))
                self.graphs[batch] = self.capture.graph(f"decode-{batch}", batch, lambda: self.captured(batch))

    def captured(self, batch):
        """The step that a graph captures. Its own output is allocated inside of the capture, and kept."""
        self.outputs[batch] = self.step(batch)
        self.session.tensor(f"out.{batch}", self.outputs[batch], medusa.OUTPUT)

    def decode(self, batch):
        if batch in self.graphs:
            self.graphs[batch].replay()
        else:
            self.step(batch)


def text(engine, tokens):
    """None if a token is outside the vocabulary: if kernels are no-ops, tokens are old contents of memory."""
    known = all(0 <= t < engine.tokenizer.get_vocab_size() for t in tokens)
    return engine.tokenizer.decode(tokens) if known else None


def main():
    engine = Engine(arguments())
    with torch.inference_mode():
        try:
            engine.start()
        except ModelError as e:
            sys.exit(f"engine: {e}")
        tokens, digests = serving.report(engine)
        for size in engine.sizes:
            engine.cache.resize(size)
            serving.report(engine)
        replays = serving.replays(engine, engine.args.replays) if engine.args.replays else {}
        torch.cuda.synchronize()
    report = {
        "device": torch.cuda.get_device_name(0),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "rank": engine.ranks.rank,
        "start": "restored" if engine.restored else engine.args.mode,
        "kv_bytes": engine.kv_bytes,
        **(engine.cache.described() if engine.cache else {}),
        "graphs": len(engine.graphs),
        "stages": engine.stages.list,
        "tokens": tokens,
        "logits": digests,
        "replays": replays,
    }
    if engine.args.prompt:
        report["text"] = [text(engine, row) for row in tokens[engine.batches[-1]]]
    sys.stdout.write(json.dumps(report) + "\n")  # one write: ranks share the output
    engine.session.close()


if __name__ == "__main__":
    main()
