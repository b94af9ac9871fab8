"""Operators of ATen that captures contain, as driver calls and kernels of Triton; and device memory as the host sees it.

In: tensors on the simulated GPU. Out: work in the current stream. Fails: RuntimeError with the driver's error.
"""

import ctypes
import struct

import torch
import triton
import triton.language as tl

import elementwise

_driver = ctypes.CDLL("libcuda.so.1")
_copy = torch.library.get_kernel("aten::copy_", "CUDA")
DIMENSIONS = 4


def call(name, *args):
    status = getattr(_driver, name)(*args)
    if status:
        raise RuntimeError(f"{name}: CUDA error {status}")


def stream():
    return ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)


class Memory:
    """A tensor's place, without a reference to it: as a kernel's parameter, it does not keep memory from being used again."""

    def __init__(self, t):
        if t.is_conj() or t.is_neg():
            raise RuntimeError("a tensor with a pending conjugation or sign")
        self.at, self.shape, self.stride, self.dtype = t.data_ptr(), t.shape, t.stride(), t.dtype
        self.size = t.element_size() * (sum((n - 1) * s for n, s in zip(t.shape, t.stride())) + 1) if t.numel() else 0

    def tensor(self):
        if not self.size:
            return torch.empty_strided(self.shape, self.stride, dtype=self.dtype)
        storage = torch._C._construct_storage_from_data_pointer(self.at, torch.device("cpu"), self.size)
        return torch.empty(0, dtype=self.dtype).set_(storage, 0, self.shape, self.stride)


@triton.jit
def copy_elements(src, dst, n, n1, n2, n3, s0, s1, s2, s3, d0, d1, d2, d3, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    i3, rest = i % n3, i // n3
    i2, rest = rest % n2, rest // n2
    i1, i0 = rest % n1, rest // n1
    x = tl.load(src + i0 * s0 + i1 * s1 + i2 * s2 + i3 * s3, inside)
    tl.store(dst + i0 * d0 + i1 * d1 + i2 * d2 + i3 * d3, x.to(dst.dtype.element_ty), inside)


@triton.jit
def copy_rows(table, index, out, width, pitch, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = i < width
    x = tl.load(table + tl.load(index + row).to(tl.int64) * pitch + i, inside)
    tl.store(out + row.to(tl.int64) * width + i, x, inside)


@triton.jit
def largest(x, out, width, pitch, BLOCK: tl.constexpr):
    row, i = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    v = tl.load(x + row * pitch + i, i < width, -float("inf")).to(tl.float32)
    # As ATen's: NaN is larger than all numbers. A mistake may leave a row of NaN, which equals none.
    best, unordered = tl.min(tl.where(v == tl.max(v, 0), i, BLOCK), 0), tl.min(tl.where(v != v, i, BLOCK), 0)
    tl.store(out + row, tl.where(unordered < BLOCK, unordered, best).to(tl.int64))


@triton.jit
def fill_words(out, value, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.full((BLOCK,), value, out.dtype.element_ty), i < n)


def copy_(dst, src, non_blocking=False):
    """Between host and device, and of equal elements without gaps, ATen's own copy asks the driver."""
    plain = dst.dtype == src.dtype and dst.shape == src.shape and dst.is_contiguous() and src.is_contiguous()
    if plain or not (dst.is_cuda and src.is_cuda) or not dst.numel():
        return _copy.call_boxed(torch._C.DispatchKeySet(torch._C.DispatchKey.CUDA), dst, src, non_blocking)
    if dst.dim() > DIMENSIONS or dst.is_complex() or src.is_complex():
        return copy_.host(dst, src, non_blocking)
    src = src.expand(dst.shape)
    if dst.dtype == src.dtype == torch.bool:
        dst_bytes, src = dst.view(torch.uint8), src.view(torch.uint8)
    else:
        dst_bytes = dst
    missing = DIMENSIONS - dst.dim()
    sizes, s, d = ([fill] * missing + list(x) for fill, x in ((1, dst.shape), (0, src.stride()), (0, dst.stride())))
    copy_elements[(triton.cdiv(dst.numel(), 256),)](src, dst_bytes, dst.numel(), *sizes[1:], *s, *d, BLOCK=256)
    return dst


def index_select(table, dim, index):
    if dim != 0 or table.dim() != 2 or table.stride(1) != 1 or not index.is_contiguous() or not index.is_cuda:
        return index_select.host(table, dim, index)
    out = torch.empty((index.numel(), table.shape[1]), dtype=table.dtype, device=table.device)
    if out.numel():
        grid = index.numel(), triton.cdiv(table.shape[1], 128)
        copy_rows[grid](table, index, out, table.shape[1], table.stride(0), BLOCK=128)
    return out


def index(table, indices):
    at, *rest = indices
    if rest or at is None or at.dim() != 1 or at.dtype not in (torch.int32, torch.int64) or table.dim() > 2:
        return index.host(table, indices)
    rows = index_select(table.reshape(len(table), -1), 0, at.contiguous())
    return rows.reshape(len(at), *table.shape[1:])


def cat(tensors, dim=0):
    dtypes, shapes = {t.dtype for t in tensors}, [t.shape for t in tensors]
    if len(dtypes) > 1 or len({len(shape) for shape in shapes}) > 1 or not all(t.is_cuda for t in tensors):
        return cat.host(tensors, dim)
    shape, at = list(shapes[0]), 0
    shape[dim] = sum(s[dim] for s in shapes)
    out = torch.empty(shape, dtype=tensors[0].dtype, device=tensors[0].device)
    for t in tensors:
        out.narrow(dim, at, t.shape[dim]).copy_(t)
        at += t.shape[dim]
    return out


def argmax(x, dim=None, keepdim=False):
    if x.dim() != 2 or dim not in (1, -1) or keepdim or x.stride(1) != 1 or not x.is_floating_point() or x.dtype == torch.float64:
        return argmax.host(x, dim, keepdim)
    out = torch.empty(len(x), dtype=torch.int64, device=x.device)
    if len(x):
        largest[(len(x),)](x, out, x.shape[1], x.stride(0), BLOCK=triton.next_power_of_2(x.shape[1]))
    return out


def word(value, dtype):
    """The bytes of a value of this type."""
    return bytes(torch.tensor([value], dtype=dtype).view(torch.uint8).tolist())


def fill_(t, value):
    data = word(value, t.dtype) if t.is_contiguous() else b""
    if not t.numel():
        return t
    if data and not any(data):
        call("cuMemsetD8Async", ctypes.c_uint64(t.data_ptr()), 0, ctypes.c_size_t(t.nbytes), stream())
    elif len(data) in (1, 2, 4):
        number = {1: "B", 2: "H", 4: "I"}[len(data)]
        kind = {1: ctypes.c_uint8, 2: ctypes.c_uint16, 4: ctypes.c_uint32}[len(data)]
        (bits,) = struct.unpack(number, data)
        call(f"cuMemsetD{8 * len(data)}Async", ctypes.c_uint64(t.data_ptr()), kind(bits), ctypes.c_size_t(t.numel()), stream())
    elif data and t.dtype == torch.int64:
        fill_words[(triton.cdiv(t.numel(), 256),)](t, value, t.numel(), BLOCK=256)
    else:
        return fill_.host(t, value)
    return t


def zero_(t):
    return fill_(t, 0)


def operators(hosts):
    """The operators of Triton and the driver by ATen's names; each falls back to its form on the host."""
    own = {"copy_": copy_, "index_select": index_select, "index.Tensor": index, "cat": cat, "argmax": argmax, "fill_.Scalar": fill_, "zero_": zero_, **elementwise.OPERATORS}
    for name, f in own.items():
        f.host = hosts.get(name)
    return own
