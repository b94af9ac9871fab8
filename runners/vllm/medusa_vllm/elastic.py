"""A KV cache that has the addresses of its recorded size, and memory for a part of its blocks.

In: vLLM's configuration of a KV cache, and bytes. Out: a tensor over the addresses of each layer's cache. Its first blocks may be used, the same number in
each layer. Block 0, vLLM's null block, is always one of them. Fails: MemoryError if the driver gives no addresses, or no memory;
ValueError for a layout whose blocks are not contiguous, and for a size that the cache cannot have.
"""

import contextlib

import torch
from vllm.v1.worker.gpu import attn_utils

from medusa_graphs.ranges import PAGE, Ranges, blocks_in, pages_for

ALLOCATE = "_allocate_kv_cache"  # of 0.26's attn_utils; a string, because other releases have no such function and are refused (gate.ELASTIC)
WARM_UP = 17  # blocks that vLLM's own warm-up and the profile run use: 16 requests, and the null block


class Cache:
    """The address ranges of all layers, at first with memory for the least number of blocks. The size may change between two steps."""

    def __init__(self, config, longest, device):
        if any(t.block_stride > 0 or t.size % config.num_blocks for t in config.kv_cache_tensors):
            raise ValueError("layers share the pages of an elastic KV cache")
        self.most, self.pool = config.num_blocks, None
        self.sizes = [t.size // config.num_blocks for t in config.kv_cache_tensors]
        sequence = sum(-(-longest // g.kv_cache_spec.block_size) for g in config.kv_cache_groups)
        least = min(max(1 + sequence, WARM_UP), self.most)
        self.first = [pages_for(least * size) for size in self.sizes]
        self.ranges = Ranges([t.size for t in config.kv_cache_tensors], self.first, device)
        self.least = self.ranges.mapped
        self.tensors = {}
        for t, r in zip(config.kv_cache_tensors, self.ranges.all):
            self.tensors |= dict.fromkeys(t.shared_by, r.tensor(t.size).view(torch.int8))

    @property
    def blocks(self):
        """The number of blocks that may be used: every layer has memory for them."""
        return min(self.most, *(pages * PAGE // size for pages, size in zip(self.ranges.pages, self.sizes)))

    def pages(self, blocks):
        return [max(least, pages_for(blocks * size)) for least, size in zip(self.first, self.sizes)]

    def grow(self, total):
        """Maps as many blocks as fit into total bytes. After an error, the blocks that every layer has got stay mapped."""
        try:
            self.ranges.move(self.pages(max(self.blocks, blocks_in(total, self.sizes, self.most))))
        except MemoryError:
            self.ranges.move(self.pages(self.blocks))  # unmaps pages of blocks that some layers lack
            raise

    def described(self):
        r = self.ranges
        return {
            "range_bytes": r.size,
            "least_bytes": self.least,
            "mapped_bytes": r.mapped,
            "page_bytes": PAGE * len(r.all),
            "blocks": self.pool.below,
        }

    def resize(self, total):
        """Resizes the cache to total bytes, rounded down to blocks in whole pages. While requests hold blocks that are to go, it returns False and keeps all
        pages mapped: call it again, or call keep. After an error the cache has its old size."""
        if not self.least <= total <= self.ranges.size:
            raise ValueError(f"resize KV cache: {total} bytes are not between the least, {self.least}, and the most, {self.ranges.size}")
        blocks = blocks_in(total, self.sizes, self.most)
        if blocks < self.blocks:
            self.pool.restrict(blocks)
            # mutant: memory of blocks that requests have
            if self.pool.busy():
                return False
        try:
            # Steps that the device has not finished may still use the pages.
            torch.cuda.synchronize()  # mutant: work that the device has not finished
            self.ranges.resize(self.pages(blocks))
        except MemoryError as e:
            raise MemoryError(f"resize KV cache to {total} bytes: {e}") from e
        finally:
            # mutant: blocks after a resize that failed
            self.keep()
        return True

    def keep(self):
        """Ends a resize that has not been finished. All blocks with memory are handed out."""
        self.pool.restrict(self.blocks)


@contextlib.contextmanager
def allocating(runner, make):
    """Inside this context, vLLM's runner gets the memory of its KV cache from make, by the names of layers."""
    kept = getattr(attn_utils, ALLOCATE)
    setattr(attn_utils, ALLOCATE, lambda config, *_: make(config))
    runner._allocate_kv_cache_tensors = make
    try:
        yield
    finally:
        setattr(attn_utils, ALLOCATE, kept)
        del runner._allocate_kv_cache_tensors
