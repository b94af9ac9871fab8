"""What a model does on a device, once and small, and one captured graph of it: for looking at what the recorder makes of it.

In: nothing. Out: one line with how many kinds of work were captured. Fails: as torch does.
"""

import torch
import torch.nn.functional as F

import triton_norm


class RMSNorm(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(width, dtype=torch.bfloat16, device="cuda"))
        self.variance_epsilon = 1e-6


def main():
    torch.manual_seed(1)
    make = lambda *shape: torch.randn(shape, dtype=torch.float32).to("cuda", torch.bfloat16)
    x, w, norm = make(64, 256), make(256, 256), RMSNorm(256)
    work = (
        lambda: x @ w,
        lambda: F.scaled_dot_product_attention(*(x.view(1, 64, 4, 64).transpose(1, 2) for _ in range(3)), is_causal=True),
        lambda: triton_norm.forward(norm, x),
        lambda: F.silu(x) * x,
    )
    with torch.inference_mode():
        for f in work:
            f()
        torch.cuda.synchronize()
        graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
        with torch.cuda.graph(graph, stream=stream):
            outputs = [f() for f in work]
        graph.replay()
        torch.cuda.synchronize()
    print(f"captured {len(outputs)} kinds of work")


main()
