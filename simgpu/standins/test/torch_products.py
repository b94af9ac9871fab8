"""PyTorch's matrix products on the simulated GPU against PyTorch on the CPU.

In: a torch, and the stand-ins and the simulated driver that the dynamic linker finds; SIMGPU_MACHINE_CODE=refuse, so that no kernel of torch's
own can take part. Out: one line. Fails: a product differs by more than its bound from that of the CPU in double precision.
"""

import sys

import torch
import torch.nn.functional as F

# Roundings of the result, relative to the sum of absolute products.
BOUND = {torch.float64: 2e-15, torch.float32: 2e-6, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}
SHAPES = ((65, 33, 7), (1, 130, 67), (3, 257, 130), (4, 64, 64), (70, 5, 65))


def on_device(x):
    return torch.empty(x.shape, dtype=x.dtype, device="cuda").copy_(x)


def cases():
    """Yields a name, a function of operands, and the operands."""
    torch.manual_seed(1)
    for dtype in BOUND:
        for m, k, n in SHAPES:
            a, b, w, bias = torch.randn(m, k), torch.randn(k, n), torch.randn(n, k), torch.randn(n)
            a3, b3 = torch.randn(3, m, k), torch.randn(3, k, n)
            name = f"{str(dtype)[6:]} {m}x{k}x{n}"
            yield f"mm {name}", torch.mm, [x.to(dtype) for x in (a, b)]
            yield f"mm transposed {name}", lambda x, y: torch.mm(x.t(), y.t()), [x.to(dtype) for x in (a.t().contiguous(), w)]
            yield f"linear {name}", F.linear, [x.to(dtype) for x in (a, w)]
            yield f"linear with bias {name}", F.linear, [x.to(dtype) for x in (a, w, bias)]
            yield f"bmm {name}", torch.bmm, [x.to(dtype) for x in (a3, b3)]


def main():
    checked = missed = 0
    for name, function, operands in cases():
        want = function(*(x.double() for x in operands))
        size = function(*(x.double().abs() for x in operands))
        got = function(*(on_device(x) for x in operands)).cpu()
        checked += 1
        error = float(((got.double() - want).abs() / (size + 1e-3)).max())
        if not error <= BOUND[got.dtype]:
            print(f"{name}: error {error:.3g}, bound {BOUND[got.dtype]}")
            missed += 1
    print(f"test-products: {'FAIL' if missed or not checked else 'PASS'} device=simulated torch={torch.__version__} products={checked}")
    return 1 if missed or not checked else 0


if __name__ == "__main__":
    with torch.inference_mode():
        sys.exit(main())
