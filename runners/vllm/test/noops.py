"""Kernels that are no-ops on the simulated GPU, and whose results something else looks at: they get results here.

In: nothing. Out: vLLM's functions in other forms. Fails: as vLLM's do.
"""

import torch
from served import schedules
from vllm.v1.sample.rejection_sampler import PLACEHOLDER_TOKEN_ID
from vllm.v1.worker import gpu_model_runner


def install():
    """Those of each engine."""
    adapters_on_host()
    schedules.install()


def adapters_on_host():
    """Which row is whose is found out by kernels that do nothing here: the result is old contents of the memory. Copies from the host are made."""
    from vllm.lora.ops.triton_ops import LoRAKernelMeta

    prepare = LoRAKernelMeta.prepare_tensors
    LoRAKernelMeta.prepare_tensors = lambda meta, mapping: prepare(meta, mapping.cpu())


def known_tokens():
    """The V1 runner looks for n-grams among the tokens of a request, which no kernel has computed here: one a step is sampled, and no draft accepted."""
    sample = gpu_model_runner.GPUModelRunner._sample

    def one(runner, *args):
        out = sample(runner, *args)
        tokens = torch.full(out.sampled_token_ids.shape, PLACEHOLDER_TOKEN_ID, dtype=runner.sampled_token_ids_pinned_cpu.dtype)
        tokens[:, 0] = 0
        out.sampled_token_ids = tokens.to(out.sampled_token_ids.device)
        return out

    gpu_model_runner.GPUModelRunner._sample = one
