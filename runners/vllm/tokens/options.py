"""The arguments that both of the test's engines give vLLM: `LLM` and `vllm serve`.

In: the type, vLLM's mode of graphs, how many blocks the KV cache has, how many tokens a step computes, the attention backend. Out: arguments of LLM, or the same as flags.
"""

import json
import os

SIZES = [1, 2, 4, 8]
BATCHED = 256  # tokens of a step, eight prompts: the largest forward, which is that of the profile
# Blocks: eight sequences of the greatest length take 64. The larger cache is one of which verification looks at a part.
ROOMY, TIGHT = 30000, 40
PARTS = 64  # tokens of a step that are less than a long prompt, of which it computes a part
# A crowd is more requests than the cache takes at its least size, of one page in each layer: a page has 128 blocks.
CROWD, CROWDED, PAGE_BLOCKS = 64, 2560, 128  # requests that run, blocks of the whole cache
TRITON, MLA = "TRITON_ATTN", "TRITON_MLA"  # attention backends


def options(dtype, graphs, blocks=ROOMY, crowd=False, step=BATCHED, each=1, backend=TRITON):
    """each: tokens of a step for a request."""
    compiled = graphs.endswith("PIECEWISE") and os.environ.get("VLLM_USE_BREAKABLE_CUDAGRAPH") != "1"  # which takes the compiler's place
    sizes = [1, 8, CROWD] if crowd else [each * size for size in SIZES]
    compilation = {"mode": 3 if compiled else 0, "cudagraph_mode": graphs, "cudagraph_capture_sizes": sizes}
    if compiled:
        compilation["custom_ops"] = ["none"]
    more = {"max_num_seqs": CROWD, "block_size": 32} if crowd else {"max_num_seqs": 8}
    return more | {
        "dtype": dtype,
        "max_model_len": 128,
        "max_num_batched_tokens": step,
        "gpu_memory_utilization": 0.3,
        "num_gpu_blocks_override": blocks,
        "attention_config": {"backend": backend},
        "compilation_config": compilation,
    }


def flags(arguments):
    """The flags of vllm serve."""
    for name, value in arguments.items():
        yield "--" + name.replace("_", "-")
        yield json.dumps(value) if isinstance(value, dict) else str(value)
