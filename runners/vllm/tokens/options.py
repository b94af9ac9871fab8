"""What both of the test's engines tell vLLM: `LLM` and `vllm serve`.

In: the type, vLLM's mode of graphs, how many blocks the KV cache has. Out: arguments of LLM, or the flags that say the same.
"""

import json

SIZES = [1, 2, 4, 8]
ROOMY, TIGHT = 96, 40  # blocks: eight sequences of the greatest length take 64
LARGE = 8192  # blocks: many pages of memory in each layer


def options(dtype, graphs, blocks=ROOMY):
    compiled = graphs.endswith("PIECEWISE")
    compilation = {"mode": 3 if compiled else 0, "cudagraph_mode": graphs, "cudagraph_capture_sizes": SIZES}
    if compiled:
        compilation["custom_ops"] = ["none"]
    return {
        "dtype": dtype,
        "max_model_len": 128,
        "max_num_seqs": 8,
        "max_num_batched_tokens": 256,
        "gpu_memory_utilization": 0.3,
        "num_gpu_blocks_override": blocks,
        "attention_config": {"backend": "TRITON_ATTN"},
        "compilation_config": compilation,
    }


def flags(arguments):
    """Of vllm serve."""
    for name, value in arguments.items():
        yield "--" + name.replace("_", "-")
        yield json.dumps(value) if isinstance(value, dict) else str(value)
