"""A KV cache that has the addresses of its recorded size, and memory for a part of its blocks.

In: vLLM's configuration of a KV cache, and bytes. Out: a tensor over the addresses of each layer's cache, of which the first blocks may be used: as many in
each layer. Block 0, vLLM's null block, is always one of them. Fails: MemoryError if the driver gives no addresses, or no memory for the least part;
ValueError for a layout whose blocks do not lie one behind the other.

A range's first pages are one mapping, which is made with the range and which graphs may refer to. Pages beyond it are mapped one by one.
"""

import contextlib
import ctypes

import torch
from vllm.v1.core.block_pool import BlockPool
from vllm.v1.worker.gpu import attn_utils

from .share import PAGE, blocks_in, pages_for

ALLOCATE = "_allocate_kv_cache"  # of 0.26's attn_utils; a string, because other releases have no such function and are refused (gate.ELASTIC)
WARM_UP = 17  # blocks that vLLM's own warm-up and the run that profiles name: 16 requests, and the null block


class _Memory:
    def __init__(self, address, size):
        self.__cuda_array_interface__ = {"shape": (size,), "typestr": "|i1", "data": (address, False), "version": 2}


class _Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class _Properties(ctypes.Structure):
    """CUmemAllocationProp."""

    _fields_ = [("type", ctypes.c_int), ("handles", ctypes.c_int), ("location", _Location), ("security", ctypes.c_void_p), ("flags", ctypes.c_ubyte * 8)]


class _Access(ctypes.Structure):
    """CUmemAccessDesc."""

    _fields_ = [("location", _Location), ("flags", ctypes.c_int)]


class Range:
    """Addresses of a number of bytes, with memory from their beginning on."""

    def __init__(self, size, device):
        self.cuda, self.size, self.mapped = ctypes.CDLL("libcuda.so.1"), pages_for(size) * PAGE, 0
        self.here = _Location(1, device)
        address = ctypes.c_uint64()
        self._call("cuMemAddressReserve", ctypes.byref(address), ctypes.c_size_t(self.size), ctypes.c_size_t(0), ctypes.c_uint64(0), ctypes.c_uint64(0))
        self.address = address.value

    def _call(self, name, *args):
        if result := getattr(self.cuda, name)(*args):
            raise MemoryError(f"{name}: driver error {result}")

    def map(self, size):
        """Maps so many bytes more, in one piece, and fills them with zeros, as vLLM does."""
        handle, at, size = ctypes.c_uint64(), ctypes.c_uint64(self.address + self.mapped), ctypes.c_size_t(size)
        properties, access = _Properties(1, 0, self.here), _Access(self.here, 3)
        self._call("cuMemCreate", ctypes.byref(handle), size, ctypes.byref(properties), ctypes.c_uint64(0))
        try:
            self._call("cuMemMap", at, size, ctypes.c_size_t(0), handle, ctypes.c_uint64(0))
        finally:
            self._call("cuMemRelease", handle)
        try:
            self._call("cuMemSetAccess", at, size, ctypes.byref(access), ctypes.c_size_t(1))
            self._call("cuMemsetD8_v2", at, ctypes.c_ubyte(0), size)
        except MemoryError:
            self._call("cuMemUnmap", at, size)
            raise
        self.mapped += size.value

    def tensor(self, size):
        return torch.as_tensor(_Memory(self.address, size), device=torch.device("cuda", self.here.id))


class Cache:
    """The ranges of all layers, with memory for the least part."""

    def __init__(self, config, longest, device):
        if any(t.block_stride > 0 or t.size % config.num_blocks for t in config.kv_cache_tensors):
            raise ValueError("layers share the pages of an elastic KV cache")
        self.most = config.num_blocks
        self.sizes = [t.size // config.num_blocks for t in config.kv_cache_tensors]
        sequence = max(-(-longest // g.kv_cache_spec.block_size) for g in config.kv_cache_groups)
        least = min(max(1 + sequence, WARM_UP), self.most)
        self.ranges, self.tensors = [], {}
        for t, size in zip(config.kv_cache_tensors, self.sizes):
            r = Range(t.size, device)
            r.map(pages_for(least * size) * PAGE)
            self.ranges.append(r)
            self.tensors |= dict.fromkeys(t.shared_by, r.tensor(t.size))
        self.least = self.mapped

    @property
    def mapped(self):
        return sum(r.mapped for r in self.ranges)

    @property
    def blocks(self):
        """That may be used: every layer has them."""
        return min(self.most, *(r.mapped // size for r, size in zip(self.ranges, self.sizes)))

    def grow(self, total):
        """Maps as many blocks as so many bytes pay for. Layer by layer, a page at a time, so that an error leaves most blocks to all."""
        blocks = blocks_in(total, self.sizes, self.most)
        while any(r.mapped < pages_for(blocks * size) * PAGE for r, size in zip(self.ranges, self.sizes)):
            for r, size in zip(self.ranges, self.sizes):
                if r.mapped < pages_for(blocks * size) * PAGE:
                    r.map(PAGE)


@contextlib.contextmanager
def allocating(runner, make):
    """While it lasts, vLLM's runner gets the memory of its KV cache from make, by the names of layers."""
    kept = getattr(attn_utils, ALLOCATE)
    setattr(attn_utils, ALLOCATE, lambda config, *_: make(config))
    runner._allocate_kv_cache_tensors = make
    try:
        yield
    finally:
        setattr(attn_utils, ALLOCATE, kept)
        del runner._allocate_kv_cache_tensors


def limit(blocks):
    """The scheduler that is made next in this process hands out blocks below this number."""
    made = BlockPool.__init__

    def limited(self, num_gpu_blocks, *args, **kwargs):
        BlockPool.__init__ = made
        made(self, min(num_gpu_blocks, blocks), *args, **kwargs)

    BlockPool.__init__ = limited
