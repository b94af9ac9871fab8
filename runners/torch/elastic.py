"""A KV cache with more sequences than a batch, and memory for a part of them.

In: a model, and the bytes of the largest cache. Out: a tensor over the addresses of each layer's keys, and of its values, [slots, length, heads, dim]. The first
slots have memory, the same number in each. Fails: MemoryError if the driver gives no addresses, or no memory for a batch.

A graph reads the slots that device memory names, so slots without memory are never touched.
"""

import sys

import torch

from medusa_graphs.ranges import PAGE, Ranges, pages_for


class Cache:
    def __init__(self, model, length, size):
        rows, ranges = model.rows.shape[0], 2 * model.config.num_hidden_layers
        self.slot = length * model.token_bytes() // ranges  # bytes, in one range
        self.slots = size // (self.slot * ranges)
        self.model, self.first = model, pages_for(rows * self.slot)
        self.ranges = Ranges([self.slots * self.slot] * ranges, [self.first] * ranges, model.device.index)
        self.least = self.ranges.mapped

    def tensor(self, i, rows, *dims):
        return self.ranges.all[i].tensor(self.slots * self.slot).view(self.model.dtype).view(self.slots, *dims)

    @property
    def usable(self):
        """Slots that have memory in every range."""
        return min(self.slots, min(self.ranges.pages) * PAGE // self.slot)

    def resize(self, total):
        """Resizes the cache to total bytes at most, rounded down to whole pages of every range, and no less than the least. Batches then take the
        last slots. No step may run."""
        each = len(self.ranges.all) * PAGE
        pages = min(max(total // each, self.first), pages_for(self.slots * self.slot))
        torch.cuda.synchronize()
        try:
            self.ranges.resize([pages] * len(self.ranges.all))
        finally:
            rows = self.model.rows.shape[0]
            self.model.slots.copy_(torch.arange(self.usable - rows, self.usable))

    def described(self):
        sizes = {"mapped": self.ranges.mapped, "least": self.least, "page": PAGE * len(self.ranges.all)}
        return {f"kv_{name}_bytes": size for name, size in sizes.items()} | {"kv_sequences": self.usable}

    def stretch(self, total):
        """Called after ready: resizes the cache to total bytes. If memory is short, the engine serves with the least part."""
        try:
            self.resize(total)
        except MemoryError as e:
            print(f"engine: KV cache has {self.usable} of {self.slots} sequences: {e}", file=sys.stderr, flush=True)
