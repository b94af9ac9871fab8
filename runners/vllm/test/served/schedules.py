"""FlashAttention's schedules on the simulated GPU.

In: this folder in PYTHONPATH. Out: each schedule is zeros. Fails: nothing here fails.

The kernel that makes the schedule of a step is a no-op there. The result is old contents of the memory, which a start with captures and one without have otherwise.
"""

import sys

import torch

MODULES = "vllm.v1.attention.backends.fa_utils", "vllm.v1.attention.backends.flash_attn"  # where it is, and who has imported it


def install():
    from vllm.v1.attention.backends import fa_utils

    make = getattr(fa_utils, "get_scheduler_metadata", None)  # absent if FlashAttention is

    def cleared(*args, **kwargs):
        made = make(*args, **kwargs)
        # In a graph, zeros are part of it; elsewhere a copy from the host is made.
        return made.zero_() if torch.cuda.is_current_stream_capturing() else made.copy_(torch.zeros(made.shape, dtype=made.dtype))

    for module in filter(None, map(sys.modules.get, MODULES)):
        if make and hasattr(module, "get_scheduler_metadata"):
            module.get_scheduler_metadata = cleared
