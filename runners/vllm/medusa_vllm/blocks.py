"""vLLM's pool of the KV cache's blocks, which hands out only the blocks below a number.

In: the pool that the scheduler has made, with all blocks that have addresses. Out: blocks that have memory. Blocks from the number on leave the free queue and the
prefix cache at once. A block that requests hold is withdrawn when the last request frees it. Fails: never.
"""

from vllm.v1.core.block_pool import BlockPool


class Blocks(BlockPool):
    @classmethod
    def of(cls, pool, below):
        """Turns a BlockPool into a Blocks. None of its blocks are in use."""
        pool.__class__, pool.below = cls, pool.num_gpu_blocks
        pool.restrict(below)
        return pool

    def restrict(self, below):
        """From now on, blocks below a number are handed out, and no others."""
        go, come = self.blocks[below : self.below], self.blocks[self.below : below]
        self.below = self.num_gpu_blocks = below
        self._withdraw(go)
        # mutant: blocks that a larger cache has
        self.free_block_queue.append_n([b for b in come if not b.ref_cnt])

    def _withdraw(self, blocks):
        for b in blocks:
            # mutant: blocks that a smaller cache hands out
            if not b.ref_cnt:
                self.free_block_queue.remove(b)
        # mutant: cached prefixes in blocks that go
        self.evict_blocks({b.block_id for b in blocks})

    def busy(self):
        """Whether requests still hold blocks that are not handed out any more."""
        return any(b.ref_cnt for b in self.blocks[self.below :])

    def free_blocks(self, ordered_blocks):
        blocks = list(ordered_blocks)
        super().free_blocks(blocks)
        # mutant: blocks that requests let go
        self._withdraw([b for b in blocks if b.block_id >= self.below and not b.ref_cnt])

    def get_cached_block(self, block_hash, kv_cache_group_ids):
        """Ignores cached prefixes in blocks that are to go: a request that used such a block would keep it in use."""
        found = super().get_cached_block(block_hash, kv_cache_group_ids)
        # mutant: cached prefix in a block that goes
        return None if found and any(b.block_id >= self.below for b in found) else found


def limit(blocks, took):
    """Makes the next BlockPool of this process hand out only the blocks below this number. took is called with the pool."""
    made = BlockPool.__init__

    def limited(self, *args, **kwargs):
        BlockPool.__init__ = made
        made(self, *args, **kwargs)
        took(Blocks.of(self, blocks))

    BlockPool.__init__ = limited
