"""Weights: their sources, and their way to the device.

In: a model whose memory is allocated, and a checkpoint folder or a seed. Out: a Loader that copies in a thread and on a
stream of its own, so that other stages run meanwhile. Fails: ModelError if a checkpoint lacks a tensor or has
another shape.

Tensors go through two page-locked buffers in turn: while one is copied to the device the other is filled. A loader
makes no allocations after it is made: allocations of a second thread would have no order among those of the first.
"""

import hashlib
import json
import os
import threading

import torch
from safetensors import safe_open

import medusa_graphs as medusa
from model import ModelError

BUFFER = 64 << 20  # bytes; large enough for the full rate of a PCIe link


class Random:
    """Weights from a seed: one block of random numbers, of which every tensor takes a piece of its own."""

    BLOCK = 1 << 24

    def __init__(self, seed, dtype):
        self.dtype = dtype
        self.block = torch.randn(self.BLOCK, generator=torch.Generator().manual_seed(seed)).mul_(0.02).to(dtype)
        self.identity = f"random, seed {seed}"
        self.at = 0

    def pieces(self, name, shape):
        """The values of a tensor, in order, as flat tensors. Norms have weight 1 and bias 0, so that values stay in range."""
        left = shape.numel()
        if len(shape) == 1:
            yield torch.full((left,), float(name.endswith("weight")), dtype=self.dtype)
            return
        self.at = (self.at + 7919) % self.BLOCK
        start = self.at
        while left:
            piece = self.block[start : start + left]
            yield piece
            left -= piece.numel()
            start = 0


class Checkpoint:
    """A folder of safetensors files, one or several with an index. Values are converted to the engine's dtype."""

    def __init__(self, folder, dtype, part=lambda name, tensor: tensor):
        """part: what this process needs of a tensor."""
        self.dtype, self.part = dtype, part
        index = os.path.join(folder, "model.safetensors.index.json")
        if os.path.exists(index):
            with open(index, encoding="utf-8") as f:
                names = sorted(set(json.load(f)["weight_map"].values()))
        else:
            names = ["model.safetensors"]
        self.paths = [os.path.join(folder, name) for name in names]
        self.files = [safe_open(path, framework="pt") for path in self.paths]
        self.owner = {key: f for f in self.files for key in f.keys()}

    @staticmethod
    def found(folder):
        return any(os.path.exists(os.path.join(folder, "model.safetensors" + end)) for end in ("", ".index.json"))

    @property
    def identity(self):
        total = hashlib.sha256()
        for path in self.paths:
            with open(path, "rb") as f:
                total.update(hashlib.file_digest(f, "sha256").digest())
        return "sha256:" + total.hexdigest()

    def pieces(self, name, shape):
        if name not in self.owner:
            raise ModelError(f"load weights: the checkpoint lacks {name}")
        tensor = self.part(name, self.owner[name].get_tensor(name))
        if tensor.shape != shape:
            raise ModelError(f"load weights: {name} is {list(tensor.shape)}, the configuration says {list(shape)}")
        yield tensor.to(self.dtype).reshape(-1)


def contents(model, source):
    """(tensor, pieces) of the tensors that the model needs filled. Pieces are flat tensors that follow each other."""
    for name, tensor in model.weights():
        constant = model.constants.get(name)
        yield tensor.view(-1), source.pieces(name, tensor.shape) if constant is None else [constant.view(-1)]


class Others:
    """A source with other values of the same shapes."""

    def __init__(self, source):
        self.source = source

    def pieces(self, name, shape):
        for i, piece in enumerate(self.source.pieces(name, shape)):
            yield medusa.other_weights(f"{name} {i}", piece)


class Loader:
    """Copies weights and constants to the device. Call start, and then wait, which raises the errors of the copies."""

    def __init__(self, model, source):
        self.device = model.device
        # Listed here and not by the thread: a triggering layer takes the model's other layers away while it runs.
        self.contents = list(contents(model, source))
        largest = max(t.nbytes for t, _ in self.contents)
        self.buffers = [torch.empty(min(BUFFER, largest), dtype=torch.uint8, pin_memory=True) for _ in range(2)]
        self.stream = torch.cuda.Stream()
        self.free = [torch.cuda.Event() for _ in self.buffers]
        for event in self.free:
            event.record(self.stream)  # an event is made at its first use, and the order in which they are made has to be fixed
        self.turn, self.failure = 0, None
        self.thread = threading.Thread(target=self._run, name="weights", daemon=True)

    def start(self):
        self.thread.start()

    def wait(self):
        self.thread.join()
        self.buffers = self.contents = None
        if self.failure:
            raise self.failure

    def _run(self):
        try:
            with torch.inference_mode(), torch.cuda.device(self.device), torch.cuda.stream(self.stream):
                for tensor, pieces in self.contents:
                    self._copy(tensor, pieces)
                self.stream.synchronize()
        except Exception as e:  # wait raises it in another thread
            self.failure = e

    def _copy(self, tensor, pieces):
        at, room = 0, self.buffers[0].nbytes // tensor.itemsize
        for piece in pieces:
            for part in piece.split(room):
                buffer, event = self.buffers[self.turn], self.free[self.turn]
                event.synchronize()
                staged = buffer[: part.nbytes].view(tensor.dtype)
                staged.copy_(part)
                tensor[at : at + part.numel()].copy_(staged, non_blocking=True)
                event.record(self.stream)
                at += part.numel()
                self.turn = 1 - self.turn
