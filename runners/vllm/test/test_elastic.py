"""Tests of the elastic KV cache's blocks and of its endpoint, with stand-ins for torch and vLLM."""

import asyncio
import collections
import os
import sys
import types
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))


class Block:
    def __init__(self, block_id):
        self.block_id, self.ref_cnt, self.block_hash = block_id, 0, None


class Queue(list):
    num_free_blocks = property(len)

    def append_n(self, blocks):
        self.extend(blocks)


class BlockPool:
    """As much of vLLM's as the plug-in relies on. A block with a hash can be found again until it is handed out."""

    def __init__(self, num_gpu_blocks, enable_caching=True):
        self.num_gpu_blocks, self.blocks, self.hashes = num_gpu_blocks, [Block(i) for i in range(num_gpu_blocks)], {}
        self.free_block_queue = Queue(self.blocks[1:])

    def get_new_blocks(self, n):
        got, self.free_block_queue[:n] = self.free_block_queue[:n], []
        self.evict_blocks({b.block_id for b in got})
        for b in got:
            b.ref_cnt = 1
        return got

    def cache(self, block, key):
        self.hashes[key], block.block_hash = block, key

    def get_cached_block(self, block_hash, kv_cache_group_ids):
        found = [self.hashes.get((block_hash, group)) for group in kv_cache_group_ids]
        return found if all(found) else None

    def touch(self, blocks):
        for b in blocks:
            if not b.ref_cnt:
                self.free_block_queue.remove(b)
            b.ref_cnt += 1

    def free_blocks(self, ordered_blocks):
        for b in ordered_blocks:
            b.ref_cnt -= 1
            if not b.ref_cnt:
                self.free_block_queue.append(b)

    def evict_blocks(self, block_ids):
        for i in block_ids:
            self.hashes.pop(self.blocks[i].block_hash, None)
            self.blocks[i].block_hash = None


def stand_ins():
    def module(name, **attributes):
        m = types.ModuleType(name)
        m.__path__ = []
        vars(m).update(attributes)
        return m

    ranges = module("medusa_graphs.ranges", PAGE=1, Ranges=None, blocks_in=lambda total, sizes, most: min(most, total), pages_for=lambda size: size)
    torch = module("torch", cuda=types.SimpleNamespace(synchronize=mock.Mock()))
    gpu = module("vllm.v1.worker.gpu", attn_utils=None)
    modules = [torch, module("medusa_graphs"), ranges, gpu, module("vllm.v1.core.block_pool", BlockPool=BlockPool)]
    return {m.__name__: m for m in modules} | {name: module(name) for name in ("vllm", "vllm.v1", "vllm.v1.core", "vllm.v1.worker")}


with mock.patch.dict(sys.modules, stand_ins()):
    from medusa_vllm import blocks, control, elastic


class Ranges:
    """A layer whose blocks have a page each."""

    size, all = 8, [None]

    def __init__(self):
        self.pages, self.error = [8], None

    mapped = property(lambda self: self.pages[0])

    def resize(self, wanted):
        if self.error:
            raise MemoryError(self.error)
        self.pages = list(wanted)


def cache():
    made = elastic.Cache.__new__(elastic.Cache)
    made.most, made.sizes, made.first, made.least, made.ranges = 8, [1], [2], 2, Ranges()
    made.pool = blocks.Blocks.of(BlockPool(8), 8)
    return made


class Free(unittest.TestCase):
    """The blocks that can be handed out."""

    def free(self, pool):
        return [b.block_id for b in pool.free_block_queue]


class Blocks(Free):
    def test_only_blocks_below_the_number_are_free(self):
        pool = blocks.Blocks.of(BlockPool(8), 4)
        self.assertEqual((self.free(pool), pool.num_gpu_blocks), ([1, 2, 3], 4))
        pool.restrict(6)
        self.assertEqual((self.free(pool), pool.num_gpu_blocks), ([1, 2, 3, 4, 5], 6))

    def test_the_next_pool_alone(self):
        took = []
        blocks.limit(3, took.append)
        first, second = BlockPool(8), BlockPool(8)
        self.assertEqual((took, self.free(first), len(self.free(second))), ([first], [1, 2], 7))

    def test_blocks_in_use_go_when_they_are_free(self):
        pool = blocks.Blocks.of(BlockPool(8), 8)
        used = pool.get_new_blocks(5)
        pool.restrict(4)
        self.assertEqual((self.free(pool), pool.busy()), ([], True))
        pool.free_blocks(iter(used[:4]))
        self.assertEqual((self.free(pool), pool.busy()), ([1, 2, 3], True))
        pool.free_blocks(used[4:])
        self.assertEqual((self.free(pool), pool.busy()), ([1, 2, 3], False))

    def test_blocks_that_come_back_before_they_are_free(self):
        pool = blocks.Blocks.of(BlockPool(8), 8)
        used = pool.get_new_blocks(7)
        pool.restrict(4)
        pool.free_blocks(used[4:6])
        pool.restrict(8)
        self.assertEqual(self.free(pool), [5, 6])
        pool.free_blocks(used[6:])
        self.assertEqual(self.free(pool), [5, 6, 7])

    def test_cached_prefixes_go(self):
        pool = blocks.Blocks.of(BlockPool(8), 8)
        used = pool.get_new_blocks(7)
        for b in used:
            pool.cache(b, (b.block_id, 0))
        pool.free_blocks(used[:6])
        pool.restrict(4)
        self.assertEqual([i for i in range(8) if pool.get_cached_block(i, [0])], [1, 2, 3])
        # A request that runs fills a block that is to go.
        pool.cache(used[6], ("new", 0))
        self.assertIsNone(pool.get_cached_block("new", [0]))
        pool.free_blocks(used[6:])
        self.assertNotIn(("new", 0), pool.hashes)


class Resizes(Free):
    def setUp(self):
        self.cache = cache()

    def test_smaller_and_larger(self):
        for size in 4, 2, 8, 5:
            self.assertTrue(self.cache.resize(size))
            self.assertEqual((self.cache.blocks, self.free(self.cache.pool)), (size, list(range(1, size))))
            self.assertEqual(self.cache.described()["mapped_bytes"], size)

    def test_memory_of_requests_stays(self):
        used = self.cache.pool.get_new_blocks(7)
        self.assertFalse(self.cache.resize(4))
        self.assertEqual(self.cache.ranges.pages, [8])
        self.cache.pool.free_blocks(used)
        self.assertTrue(self.cache.resize(4))
        self.assertEqual(self.cache.ranges.pages, [4])

    def test_keep(self):
        used = self.cache.pool.get_new_blocks(7)
        self.assertFalse(self.cache.resize(4))
        self.cache.keep()
        self.cache.pool.free_blocks(used)
        self.assertEqual(self.free(self.cache.pool), [1, 2, 3, 4, 5, 6, 7])

    def test_an_error_leaves_the_old_size(self):
        self.cache.ranges.error = "cuMemUnmap: driver error 2"
        self.assertEqual(control.answer(self.cache, lambda: self.cache.resize(4)), (500, {"error": "resize KV cache to 4 bytes: cuMemUnmap: driver error 2"}))
        self.assertEqual(self.free(self.cache.pool), [1, 2, 3, 4, 5, 6, 7])

    def test_the_device_is_waited_for(self):
        elastic.torch.cuda.synchronize.reset_mock()
        self.cache.resize(4)
        elastic.torch.cuda.synchronize.assert_called_once()

    def test_sizes_that_cannot_be(self):
        for size in 1, 9:
            status, what = control.answer(self.cache, lambda size=size: self.cache.resize(size))
            self.assertEqual((status, what["error"][:17]), (400, "resize KV cache: "))
        self.assertEqual(self.cache.blocks, 8)
        self.assertEqual(control.answer(None)[0], 400)


class Engine:
    """vLLM's client of the engine. waits: how many calls end before the requests do."""

    def __init__(self, waits):
        self.waits, self.calls = waits, []

    async def collective_rpc(self, method, args=()):
        self.calls.append((method, *args))
        pending = method == "resize_kv_cache" and len(self.calls) <= self.waits
        return [[202 if pending else 200, {"blocks": 1}]]


class Endpoints(unittest.TestCase):
    def resize(self, text, waits=0, stays=100):
        """left is asked once in each round."""
        endpoint, engine, left = control.Endpoint(), Engine(waits), collections.deque([False] * stays + [True])

        async def run():
            await endpoint.init_state(engine, None, None)

            async def gone():
                return left.popleft()

            return await endpoint.resize(text, gone)

        with mock.patch.object(control, "AGAIN", 0):
            return asyncio.run(run()), engine.calls

    def test_a_resize_is_asked_for_until_it_is_done(self):
        (status, _), calls = self.resize("4096", waits=3)
        self.assertEqual((status, calls), (200, [("resize_kv_cache", 4096)] * 4))

    def test_a_client_that_leaves(self):
        _, calls = self.resize("4096", waits=100, stays=2)
        self.assertEqual(calls, [("resize_kv_cache", 4096)] * 3 + [("keep_kv_cache",)])

    def test_no_numbers(self):
        for text in "", "-1", "4k", "1.5", "²":
            (status, what), calls = self.resize(text)
            self.assertEqual((status, what["error"][:17], calls), (400, "resize KV cache: ", []))

    def test_numbers_that_no_call_holds(self):
        _, calls = self.resize(str(10**30))
        self.assertEqual(calls, [("resize_kv_cache", 2**63 - 1)])


if __name__ == "__main__":
    unittest.main()
