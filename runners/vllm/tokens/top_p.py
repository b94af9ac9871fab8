"""vLLM's Triton kernel of top-p, which lacks a barrier, with and without one.

    top_p.py            as make test-tokens runs the engine: the tool chain, SIMGPU_MACHINE_CODE=refuse

In: none. Out: a line: how many of the batches have other tokens left than a sort leaves, from vLLM's kernel, and from the same with a barrier after each
store to the buffer that other threads read. Fails: exit code 1 if vLLM's kernel is right each time (it is mended, and traffic.py may draw with top-p), or if
the barriers do not mend it.

A batch of eight rows and more takes this kernel. It stores a row's likely tokens to a buffer and reads them, without a barrier of the block in between. Between
barriers the simulated GPU runs warps in random order, so some read the data of an earlier batch.
"""

import importlib.util
import os
import re
import sys
import tempfile

import torch

import aten

BATCHES, ROWS, WORDS, P = 20, 8, 512, 0.95
ROUNDING = 1  # tokens of a row whose sum is as near to P as rounding goes


def with_barriers(path):
    """The module again, from a source with barriers."""
    with open(path, encoding="utf-8") as f:
        source = f.read()
    made, count = re.subn(r"^( +)(tl\.store\(\s*BUFFER_ROW[^\n]*(?:\n\1 [^\n]*)*(?:\n\1\))?)$", r"\1\2\n\1tl.debug_barrier()", source, flags=re.M)
    assert count == source.count("tl.store(BUFFER_ROW") + len(re.findall(r"tl\.store\(\s+BUFFER_ROW", source)), count
    folder = tempfile.mkdtemp()
    copy = os.path.join(folder, "with_barriers.py")
    with open(copy, "w", encoding="utf-8") as f:
        f.write(made)
    spec = importlib.util.spec_from_file_location("with_barriers", copy)
    module = sys.modules["with_barriers"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def left_by_a_sort(x):
    ordered, at = x.sort(1)
    gone = ordered.softmax(1).cumsum(1) <= 1 - P
    gone[:, -1] = False
    return torch.zeros_like(gone).scatter_(1, at, ~gone)


def wrong(f):
    """How many batches of different spread have other tokens left."""
    torch.manual_seed(0)
    count = 0
    for i in range(BATCHES):
        x = torch.randn(ROWS, WORDS) * (1 + i % 4)
        left = f(x.cuda(), None, torch.full((ROWS,), P).cuda()).cpu().isfinite()
        count += bool(((left != left_by_a_sort(x)).sum(1) > ROUNDING).any())
    return count


def main():
    aten.install()
    from vllm.v1.sample.ops import topk_topp_triton

    with torch.inference_mode():
        own = wrong(topk_topp_triton.apply_top_k_top_p_triton)
        mended = wrong(with_barriers(topk_topp_triton.__file__).apply_top_k_top_p_triton)
    print(f"top_p: of {BATCHES} batches, {own} wrong from vLLM's kernel, {mended} with barriers")
    sys.exit(own == 0 or mended != 0)


if __name__ == "__main__":
    main()
