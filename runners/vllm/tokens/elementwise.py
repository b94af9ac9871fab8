"""ATen's sums, products, limits, layer norms and fills behind a mask that captures contain, in Triton.

In: tensors on the simulated GPU. Out: a new tensor, or the filled one. Fails: as Triton does. Complex and boolean elements, double precision, and more than four
dimensions are left to the host (aten.py).
"""

import torch
import triton
import triton.language as tl

DIMENSIONS = 4
ADD, MULTIPLY, LIMIT = range(3)


@triton.jit
def combine_elements(
    a, b, out, n, n1, n2, n3, a0, a1, a2, a3, b0, b1, b2, b3, NUMBER: tl.constexpr, OPERATION: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    i3, rest = i % n3, i // n3
    i2, rest = rest % n2, rest // n2
    i1, i0 = rest % n1, rest // n1
    x = tl.load(a + i0 * a0 + i1 * a1 + i2 * a2 + i3 * a3, inside).to(WIDE)
    y = tl.full((BLOCK,), b, WIDE) if NUMBER else tl.load(b + i0 * b0 + i1 * b1 + i2 * b2 + i3 * b3, inside).to(WIDE)
    if OPERATION == 0:
        x += y
    elif OPERATION == 1:
        x *= y
    else:
        x = tl.maximum(x, y)
    tl.store(out + i, x.to(out.dtype.element_ty), inside)


@triton.jit
def fill_masked(x, mask, value, n, n1, n2, n3, x0, x1, x2, x3, m0, m1, m2, m3, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    i3, rest = i % n3, i // n3
    i2, rest = rest % n2, rest // n2
    i1, i0 = rest % n1, rest // n1
    masked = tl.load(mask + i0 * m0 + i1 * m1 + i2 * m2 + i3 * m3, inside, 0) != 0
    tl.store(x + i0 * x0 + i1 * x1 + i2 * x2 + i3 * x3, tl.full((BLOCK,), value, x.dtype.element_ty), inside & masked)


@triton.jit
def norm_rows(x, weight, bias, out, means, scales, width, epsilon, WEIGHT: tl.constexpr, BIAS: tl.constexpr, BLOCK: tl.constexpr):
    row, i = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    inside = i < width
    v = tl.load(x + row * width + i, inside, 0.0).to(tl.float32)
    mean = tl.sum(v, 0) / width
    v = tl.where(inside, v - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(v * v, 0) / width + epsilon)
    v *= scale
    if WEIGHT:
        v *= tl.load(weight + i, inside, 0.0).to(tl.float32)
    if BIAS:
        v += tl.load(bias + i, inside, 0.0).to(tl.float32)
    tl.store(out + row * width + i, v.to(out.dtype.element_ty), inside)
    tl.store(means + row, mean)
    tl.store(scales + row, scale)


def strides(t, shape):
    return [0] * (DIMENSIONS - len(shape)) + list(t.expand(shape).stride())


def kind(dtype):
    """The type that elements are computed in, None if it is not this file's."""
    if dtype in (torch.float32, torch.bfloat16, torch.float16):
        return tl.float32
    return tl.int64 if dtype in (torch.int64, torch.int32, torch.int16, torch.uint8, torch.int8) else None


def combine(operation, a, b, host):
    if isinstance(b, torch.Tensor) and not a.is_cuda:
        a, b = b, a
    number = not (isinstance(b, torch.Tensor) and b.is_cuda)
    dtype = torch.result_type(a, b)
    shape = a.shape if number else torch.broadcast_shapes(a.shape, b.shape)
    wide = kind(dtype)
    if wide is None or kind(a.dtype) is None or (not number and kind(b.dtype) is None) or len(shape) > DIMENSIONS or not a.is_cuda:
        return host()
    if number and isinstance(b, torch.Tensor) and b.dim():
        return host()
    out = torch.empty(shape, dtype=dtype, device=a.device)
    if out.numel():
        b = b.item() if number and isinstance(b, torch.Tensor) else b
        sizes = [1] * (DIMENSIONS - len(shape)) + list(shape)
        combine_elements[(triton.cdiv(out.numel(), 256),)](
            a, b, out, out.numel(), *sizes[1:], *strides(a, shape), *([0] * DIMENSIONS if number else strides(b, shape)),
            NUMBER=number, OPERATION=operation, WIDE=wide, BLOCK=256,
        )  # fmt: skip
    return out


def masked_fill_(x, mask, value):
    if kind(x.dtype) is None or x.dim() > DIMENSIONS or not mask.is_cuda:
        return masked_fill_.host(x, mask, value)
    if x.numel():
        sizes = [1] * (DIMENSIONS - x.dim()) + list(x.shape)
        fill_masked[(triton.cdiv(x.numel(), 256),)](x, mask.view(torch.uint8), value, x.numel(), *sizes[1:], *strides(x, x.shape), *strides(mask, x.shape), BLOCK=256)
    return x


def add(a, b, *, alpha=1):
    host = lambda: add.host(a, b, alpha=alpha)  # noqa: E731
    return combine(ADD, a, b, host) if alpha == 1 else host()


def multiply(a, b):
    return combine(MULTIPLY, a, b, lambda: multiply.host(a, b))


def relu(a):
    return combine(LIMIT, a, 0, lambda: relu.host(a))


def layer_norm(x, shape, weight, bias, epsilon):
    if len(shape) != 1 or not x.is_contiguous() or kind(x.dtype) is not tl.float32:
        return layer_norm.host(x, shape, weight, bias, epsilon)
    out, rows = torch.empty_like(x), (*x.shape[:-1], 1)
    means, scales = (torch.empty(rows, dtype=torch.float32, device=x.device) for _ in range(2))
    if x.numel():
        norm_rows[(means.numel(),)](
            x, x if weight is None else weight, x if bias is None else bias, out, means, scales, shape[0], epsilon,
            WEIGHT=weight is not None, BIAS=bias is not None, BLOCK=triton.next_power_of_2(shape[0]),
        )  # fmt: skip
    return out, means, scales


OPERATORS = {"add.Tensor": add, "mul.Tensor": multiply, "relu": relu, "native_layer_norm": layer_norm, "masked_fill_.Scalar": masked_fill_}
