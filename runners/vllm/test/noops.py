"""Results for kernels that are no-ops on the simulated GPU, if other code reads the results.

In: none. Out: vLLM's functions in other forms. Fails: as vLLM's do.
"""

import torch
import triton.testing
from served import schedules
from torch._inductor.runtime.benchmarking import benchmarker
from vllm.model_executor.layers.fused_moe import expert_map_manager
from vllm.model_executor.warmup import qwen_triton_warmup
from vllm.v1.sample.rejection_sampler import PLACEHOLDER_TOKEN_ID
from vllm.v1.worker import gpu_model_runner


def install():
    """Replaces the functions that each engine needs."""
    adapters_on_host()
    equal_times()
    no_convolution()
    no_expert_text()
    schedules.install()


def adapters_on_host():
    """vLLM's kernels that find the adapter of each row are no-ops here, so their result is old contents of the memory. On the host the result is
    computed, and copied to the device."""
    from vllm.lora.ops.triton_ops import LoRAKernelMeta

    prepare = LoRAKernelMeta.prepare_tensors
    LoRAKernelMeta.prepare_tensors = lambda meta, mapping: prepare(meta, mapping.cpu())


def equal_times():
    """Triton's autotuner repeats a kernel until some time has passed: a no-op 100,000 times and more. Each configuration runs once, and the first one is chosen.
    Inductor's would choose by noise, and ranks that share a cache choose in a race."""

    def once(call, *args, quantiles=None, **settings):
        call()
        return [1.0] * len(quantiles) if quantiles else 1.0

    triton.testing.do_bench = once
    type(benchmarker).benchmark_gpu = lambda _, call, *args, **settings: once(call)


def no_convolution():
    """vLLM's warm-up of gated delta rules reads lengths back that a kernel computes. Forwards do not."""
    qwen_triton_warmup._warm_causal_conv1d_fwd_kernel = lambda device, config: None


def no_expert_text():
    """vLLM logs which experts a rank has, as a kernel finds them."""
    expert_map_manager.ExpertMapManager.get_compressed_map_string = lambda experts: ""


def known_tokens():
    """The V1 runner looks for n-grams among the tokens of a request, but no kernel computes tokens here. So a step samples one token, and accepts no
    draft."""
    sample = gpu_model_runner.GPUModelRunner._sample

    def one(runner, *args):
        out = sample(runner, *args)
        tokens = torch.full(out.sampled_token_ids.shape, PLACEHOLDER_TOKEN_ID, dtype=runner.sampled_token_ids_pinned_cpu.dtype)
        tokens[:, 0] = 0
        out.sampled_token_ids = tokens.to(out.sampled_token_ids.device)
        return out

    gpu_model_runner.GPUModelRunner._sample = one
