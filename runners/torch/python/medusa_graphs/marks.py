"""Marks: facts that only the engine knows, told to Medusa's interposer.

In: phases, graph labels, tensors, the blocks of torch's allocator, the KV-cache profile. Out: calls of the functions of
interpose/preload/medusa.h. Each is looked up in the process and may be absent; then its mark is a no-op, and the engine
runs as if Medusa did not exist. Fails: never.
"""

import contextlib
import ctypes

import torch

from . import contract
from .contract import UNIFORM

_DTYPES = {
    torch.float32: contract.F32,
    torch.float16: contract.F16,
    torch.bfloat16: contract.BF16,
    torch.int32: contract.I32,
    torch.int64: contract.I64,
    torch.uint8: contract.U8,
}

_WIDTHS = {number: dtype.itemsize for dtype, number in _DTYPES.items()} | {contract.ADDRESS: 8}

_SIGNATURES = {
    "medusa_mark_phase": (ctypes.c_char_p,),
    "medusa_mark_graph": (ctypes.c_char_p, ctypes.c_int64),
    "medusa_mark_note": (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t),
    "medusa_mark_tensor": (ctypes.POINTER(contract.Tensor),),
    "medusa_mark_result": (ctypes.c_char_p,),
    "medusa_mark_collective": (ctypes.POINTER(contract.Collective), ctypes.c_uint64),
    "medusa_mark_collective_end": (ctypes.c_uint64,),
    "medusa_mark_communicator": (ctypes.c_int,),
    "medusa_mark_block": (ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int),
    "medusa_mark_kv_profile": (ctypes.POINTER(contract.KvProfile),),
}


def _find(name):
    function = getattr(ctypes.CDLL(None), name, None)
    if function is not None:
        function.restype, function.argtypes = None, _SIGNATURES[name]
    return function


_FUNCTIONS = {name: _find(name) for name in _SIGNATURES}


def _call(name, *args):
    function = _FUNCTIONS[name]
    if function is not None:
        function(*args)


def phase(name):
    """The engine enters a phase: structure, kv_cache, weights, tokenizer, warmup, capture, ready."""
    _call("medusa_mark_phase", name.encode())


def graph(label, batch):
    """Names the graph whose capture ends next on this thread."""
    _call("medusa_mark_graph", label.encode(), batch)


def note(name, value):
    """Opaque data that a restored start gets back: bytes, the same in every start."""
    _call("medusa_mark_note", name.encode(), value, len(value))


def extent(tensor):
    """The bytes that a tensor's elements span, from data_ptr on."""
    # mutant: tensors without elements
    if tensor.numel() == 0:
        return 0
    # mutant: extent of a tensor with gaps
    last = sum((n - 1) * stride for n, stride in zip(tensor.shape, tensor.stride()))
    return (last + 1) * tensor.element_size()


def tensor(name, t, role, lo=0, hi=0, fill=UNIFORM, addresses=False):
    """Names memory. lo and hi bound the values (hi excluded) that verification may put into an integer input. addresses: the values are device
    addresses, in a weight that differs between processes.

    A dtype that Medusa has no number for is marked as bytes.
    """
    dtype = contract.ADDRESS if addresses else _DTYPES.get(t.dtype, _DTYPES[torch.uint8])
    if dtype == contract.U8 and lo == hi:
        # mutant: bytes of a KV cache
        if role == contract.KV:
            lo, hi = 0, 0x40  # a number between 0 and 2 in every floating-point type, also those of eight bits
        # mutant: bytes of types without a number
        elif t.dtype is not torch.uint8:
            lo, hi = 0, 256
    size = extent(t)
    # mutant: rows of types without a number
    shape = [*t.shape] if addresses or t.dtype in _DTYPES else [*t.shape, t.element_size()]
    # mutant: shape of a tensor with gaps
    if not t.is_contiguous() or len(shape) > 8:
        shape = [size // _WIDTHS[dtype]]
    mark = contract.Tensor(name.encode(), t.data_ptr(), size, role, dtype, fill, len(shape), (ctypes.c_int64 * 8)(*shape), lo, hi)
    _call("medusa_mark_tensor", ctypes.byref(mark))


def result(name):
    """The graph whose capture ends next on this thread leaves a result in the output of this name."""
    _call("medusa_mark_result", name.encode())


@contextlib.contextmanager
def communicator():
    """Inside this context, the engine makes communicators. Their memory is in no artifact."""
    _call("medusa_mark_communicator", 1)
    try:
        yield
    finally:
        _call("medusa_mark_communicator", 0)


@contextlib.contextmanager
def collective(call, stream):
    """Inside this context, the engine makes a contract.Collective on a stream: a hole of a graph, if the stream captures."""
    _call("medusa_mark_collective", ctypes.byref(call), stream)
    try:
        yield
    finally:
        _call("medusa_mark_collective_end", stream)


def kv_profile(kv_bytes, total, free_before, free_after, peak_forward, utilization, profile_tokens, workspace=0):
    """The result of the KV-cache profile; sizes in bytes. workspace: see Session.workspace_bytes."""
    mark = contract.KvProfile(kv_bytes, total, free_before, free_after, peak_forward, utilization, profile_tokens, workspace)
    _call("medusa_mark_kv_profile", ctypes.byref(mark))


def blocks(device=None):
    """Exports the map of torch's caching allocator: each block of each segment, and whether a tensor owns it.

    Without it, a segment counts as one piece. Returns the number of blocks marked.
    """
    count = 0
    if _FUNCTIONS["medusa_mark_block"] is None:
        return count
    for segment in torch.cuda.memory_snapshot():
        # mutant: blocks of one device
        if device is not None and segment["device"] != device:
            continue
        address = segment["address"]
        for block in segment["blocks"]:
            # mutant: blocks that nobody owns
            _call("medusa_mark_block", address, block["size"], int(block["state"] != "inactive"))
            # mutant: address of a block
            address += block["size"]
            count += 1
    return count
