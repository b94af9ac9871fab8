"""FlashAttention's schedules on the simulated GPU.

In: this folder in PYTHONPATH. Out: each schedule is zeros. Fails: never.

The kernel that makes the schedule of a step is a no-op there. Its result is old contents of the memory, which differ between a start with captures and one without.
"""

import sys

import torch

MODULES = "vllm.v1.attention.backends.fa_utils", "vllm.v1.attention.backends.flash_attn"  # the module that has the function, and the one that imports it


def install():
    from vllm.v1.attention.backends import fa_utils

    make = getattr(fa_utils, "get_scheduler_metadata", None)  # absent if FlashAttention is

    def cleared(*args, **kwargs):
        made = make(*args, **kwargs)
        # A capture records the zeros in the graph. Outside of captures, they are copied from the host.
        return made.zero_() if torch.cuda.is_current_stream_capturing() else made.copy_(torch.zeros(made.shape, dtype=made.dtype))

    for module in filter(None, map(sys.modules.get, MODULES)):
        if make and hasattr(module, "get_scheduler_metadata"):
            module.get_scheduler_metadata = cleared
