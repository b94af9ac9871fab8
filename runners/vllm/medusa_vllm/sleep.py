"""Restored graphs while vLLM sleeps: they and their memory go, and come back from the artifact.

In: vLLM's calls of a worker (sleep, wake_up with its tags, reloads of weights), and sleep mode's allocator. Out: graphs that are there again before
the first step, once all memory that they refer to is. Sleep mode would discard other memory than weights and KV cache as well: that memory keeps
its contents. Fails: as vLLM does; graphs that cannot be used any more are dropped, with one line that gives the reason.
"""

import torch
from vllm.device_allocator import get_mem_allocator_instance
from vllm.device_allocator.sleep_mode_backend import CuMemBackend, SleepModeBackendFactory
from vllm.v1.worker import gpu_worker

import medusa_graphs as medusa
from medusa_graphs.ranges import Memory

from . import inputs
from .gaps import gaps

NAME, STOCK = "medusa", "cumem"  # of sleep-mode backends
SleepModeBackendFactory.register_backend(NAME, __name__, "Backend")


def extents(tensors):
    return [(t.untyped_storage().data_ptr(), t.untyped_storage().nbytes()) for t in tensors]


class Backend(CuMemBackend):
    """vLLM's own backend discards memory, and with it the state that graphs keep there between steps: block tables and tables of addresses.
    This one copies all memory that vLLM does not write anew to the host, and back."""

    worker = None

    def __init__(self):
        super().__init__()
        self.kept = []  # by allocation: its address, and pieces of it

    def suspend(self, level=1):
        self.keep(level != 1)
        super().suspend(level)

    def discard(self, tags):
        self.keep(True)
        super().discard(tags)

    def resume(self, tags=None):
        super().resume(tags)
        self.put_back()

    def keep(self, weights):
        """weights: whether they are discarded, too."""
        runner = self.worker.model_runner
        written = [t for _, t, role, _ in inputs.cached(runner) if role == medusa.KV]
        if weights:
            written += runner.model.parameters()
        known = extents(written)
        for address, data in get_mem_allocator_instance().pointer_to_data.items():
            # mutant: memory that vLLM keeps itself
            if not data.is_asleep and (weights or data.tag != "weights"):
                pieces = [torch.as_tensor(Memory(*piece), device="cuda") for piece in gaps(address, data.handle[1], known)]
                # mutant: memory that sleep mode discards
                self.kept.append((address, [(t, t.cpu()) for t in pieces]))

    def put_back(self):
        there = {address for address, data in get_mem_allocator_instance().pointer_to_data.items() if not data.is_asleep}
        for address, pieces in self.kept:
            for t, value in pieces if address in there else ():
                t.copy_(value)
        # mutant: memory of a tag that sleeps on
        self.kept = [(address, pieces) for address, pieces in self.kept if address not in there]


class Sleeper(gpu_worker.Worker):
    """vLLM's worker, whose graphs sleep as well."""

    asleep = due = False  # whether the graphs sleep; whether they are to be checked before the next step
    level = 0

    def sleep(self, level=1):
        self.lie_down(level)
        super().sleep(level)
        if self.asleep:
            # The backend keeps them, and puts them back with the weights. vLLM 0.26 would write them into memory that sleeps on if the KV cache wakes first.
            # mutant: buffers that are written into memory that sleeps
            self._sleep_saved_buffers = {}

    def discard(self, tags):
        self.lie_down(2 if "weights" in tags else 1)
        super().discard(tags)

    def wake_up(self, tags=None):
        super().wake_up(tags)
        if self.asleep and self.session.wake(self.level == 1):
            self.asleep, self.due = False, True
            # mutant: check of graphs whose weights are there
            if self.level == 1:
                self.check()

    def lie_down(self, level):
        if not self.graphs or not self.graphs.use.graphs:
            return
        self.level = max(level, self.level if self.asleep else 0)
        if not self.asleep:
            if self.model_config.sleep_mode_backend == STOCK:
                self.model_config.sleep_mode_backend, Backend.worker = NAME, self
            torch.cuda.synchronize()
            # mutant: graphs that vLLM's sleep leaves where they are
            self.session.sleep()
            self.asleep = self.graphs.use.asleep = True

    def check(self):
        """Called before the first step, outside of any other. Graphs that compute correct results are used again."""
        if self.due and not self.asleep:
            self.due = self.graphs.use.asleep = False
            # mutant: graphs that did not wake
            if self.graphs.use.usable():
                self.graphs.rise()

    def execute_model(self, *args, **kwargs):
        self.check()
        return super().execute_model(*args, **kwargs)

    def reload_weights(self, *args, **kwargs):
        try:
            super().reload_weights(*args, **kwargs)
        finally:
            self.reloaded()

    def update_weights(self, *args, **kwargs):
        try:
            return super().update_weights(*args, **kwargs)
        finally:
            self.reloaded()

    def reloaded(self):
        """Drops the graphs if the reload moved weights."""
        if self.graphs and self.graphs.use.graphs:
            moved = next((name for name, t in self.named_weights() if self.session.named.get(name) != place(t)), None)
            # mutant: weights that a reload moves
            if moved:
                self.drop(f"weights were reloaded to another place ({moved})")
            else:
                self.check()

    def named_weights(self):
        return [(name, t) for name, t, _, _ in inputs.once(inputs.weights(self.model_runner), set())]


def place(t):
    return t.data_ptr(), medusa.marks.extent(t)
