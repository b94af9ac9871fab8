"""vLLM's kernels in C++ that dense models take, in Triton: norms, gates of feed-forward networks, rotary positions.

In: none; `install` replaces them. Out: the same results up to rounding. vLLM's own are machine code, which the simulated GPU does not execute.
Fails: as Triton does; on layouts that the tests' models do not have.
"""

import torch
import triton
import triton.language as tl
import vllm._custom_ops  # declares the operators

_library = torch.library.Library("_C", "IMPL")


@triton.jit
def norm(out, x, residual, weight, width, inner, out_outer, out_inner, x_outer, x_inner, epsilon, ADD: tl.constexpr, BLOCK: tl.constexpr):
    """Rows lie in two dimensions, such as tokens and heads."""
    row, i = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    inside = i < width
    v = tl.load(x + row // inner * x_outer + row % inner * x_inner + i, inside, 0.0).to(tl.float32)
    if ADD:
        v += tl.load(residual + row * width + i, inside, 0.0).to(tl.float32)
        v = v.to(residual.dtype.element_ty)
        tl.store(residual + row * width + i, v, inside)
        v = v.to(tl.float32)
    scale = 1 / tl.sqrt(tl.sum(v * v, 0) / width + epsilon)
    w = tl.load(weight + i, inside, 0.0)
    tl.store(out + row // inner * out_outer + row % inner * out_inner + i, (v * scale).to(out.dtype.element_ty) * w, inside)


@triton.jit
def gate(out, x, width, GELU: tl.constexpr, BLOCK: tl.constexpr):
    row, i = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = i < width
    g = tl.load(x + row * 2 * width + i, inside, 0.0).to(tl.float32)
    up = tl.load(x + row * 2 * width + width + i, inside, 0.0)
    # GELU's (1 + tanh(u)) / 2 is 1 / (1 + exp(-2u)).
    steep = 1.5957691216057308 * (g + 0.044715 * g * g * g) if GELU else g
    tl.store(out + row * width + i, (g / (1 + tl.exp(-steep))).to(out.dtype.element_ty) * up, inside)


@triton.jit
def rotate(positions, x, table, pitch, head_pitch, NEXT: tl.constexpr, HALF: tl.constexpr):
    """NEXT: an element's partner is the next one, and not that of the other half."""
    row, head, i = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.arange(0, HALF)
    at = table + tl.load(positions + row) * 2 * HALF + i
    cos, sin = tl.load(at).to(tl.float32), tl.load(at + HALF).to(tl.float32)
    first = x + row * pitch + head * head_pitch + (2 * i if NEXT else i)
    second = first + (1 if NEXT else HALF)
    a, b = tl.load(first).to(tl.float32), tl.load(second).to(tl.float32)
    tl.store(first, (a * cos - b * sin).to(x.dtype.element_ty))
    tl.store(second, (b * cos + a * sin).to(x.dtype.element_ty))


def rows(x):
    return x.numel() // x.shape[-1]


def strides(x):
    """Of the last but two dimension and the last but one."""
    if x.dim() > 3:
        raise NotImplementedError("norms of rows in more than two dimensions")
    return (x.stride(0), x.stride(1)) if x.dim() == 3 else (0, x.stride(0))


def normalize(out, x, residual, weight, epsilon):
    width, inner = x.shape[-1], x.shape[1] if x.dim() == 3 else rows(x)
    if rows(x):
        norm[(rows(x),)](
            out, x, x if residual is None else residual, weight, width, inner, *strides(out), *strides(x), epsilon,
            ADD=residual is not None, BLOCK=triton.next_power_of_2(width),
        )  # fmt: skip


def rms_norm(out, x, weight, epsilon):
    normalize(out, x, None, weight, epsilon)


def fused_add_rms_norm(x, residual, weight, epsilon):
    normalize(x, x, residual, weight, epsilon)


def gated(out, x, gelu):
    width = out.shape[-1]
    if rows(out):
        gate[(rows(out), triton.cdiv(width, 256))](out, x, width, GELU=gelu, BLOCK=256)


def silu_and_mul(out, x):
    gated(out, x, False)


def gelu_tanh_and_mul(out, x):
    gated(out, x, True)


def rotary_embedding(positions, query, key, head_size, table, is_neox, rope_dim_offset=0, inverse=False):
    if table.shape[1] != head_size or rope_dim_offset or inverse:
        raise NotImplementedError("rotary positions of a part of a head")
    for x in (query, key):
        if x is not None and x.numel():
            n, pitch = positions.numel(), x.stride(1) if x.dim() == 3 else head_size
            rotate[(n, x.numel() // n // head_size)](positions, x, table, x.stride(0), pitch, NEXT=not is_neox, HALF=head_size // 2)


def install():
    for f in (rms_norm, fused_add_rms_norm, silu_and_mul, gelu_tanh_and_mul, rotary_embedding):
        _library.impl(f.__name__, f, "CUDA", allow_override=True)
