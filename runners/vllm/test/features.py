"""Cases of settings that people run besides the usual ones: attention, graphs for any step, quantised weights and caches, speculation, models
with an encoder of images. Requests are text alone.

In: none. Out: model, attention backend, model runner, mode, and further arguments of LLM, by case. Fails: never.

Weights are dummies: the results of kernels do not count here. The kernels and their arguments do.
"""

import json


def override(**config):
    """An argument that adds to the model's configuration."""
    return "hf_overrides=" + json.dumps({"quantization_config": config}, separators=(",", ":"))


FP8 = 'quantization="fp8"'
FP8_CACHE = 'kv_cache_dtype="fp8"'
GPTQ = override(quant_method="gptq", bits=4, group_size=128, desc_act=False, sym=True)
AWQ = override(quant_method="awq", bits=4, w_bit=4, group_size=128, q_group_size=128, zero_point=True, version="gemm")
NGRAM = "speculative_config=" + json.dumps({"method": "ngram", "num_speculative_tokens": 2, "prompt_lookup_max": 3, "prompt_lookup_min": 1}, separators=(",", ":"))
EAGLE = "speculative_config=" + json.dumps({"method": "eagle", "model": "llama", "num_speculative_tokens": 3}, separators=(",", ":"))
EAGLE3 = "speculative_config=" + json.dumps({"method": "eagle3", "model": "llama-eagle3", "num_speculative_tokens": 3}, separators=(",", ":"))
MTP = "speculative_config=" + json.dumps({"method": "mtp", "num_speculative_tokens": 2}, separators=(",", ":"))
BREAKABLE = "VLLM_USE_BREAKABLE_CUDAGRAPH=1"
OFFLOAD = "kv_transfer_config=" + json.dumps({"kv_connector": "OffloadingConnector", "kv_role": "kv_both", "kv_connector_extra_config": {"cpu_bytes_to_use": 64 << 20}}, separators=(",", ":"))
TRITON_DELTA = 'additional_config={"gdn_prefill_backend":"triton"}'  # otherwise FlashInfer computes prefills on this GPU
BLOCKS = "num_gpu_blocks_override=4096"  # 0.26.0 compiles a kernel of convolutions for each number of blocks, and a restored start has fewer
LORA = "enable_lora=true", "max_loras=2"

CASES = [
    ("deepseek", "TRITON_MLA", "V2", "FULL_DECODE_ONLY"),
    ("deepseek", "TRITON_MLA", "V1", "FULL_DECODE_ONLY"),
    ("deepseek", "TRITON_MLA", "V2", "FULL_AND_PIECEWISE"),
    ("deepseek", "TRITON_MLA", "V1", "FULL_AND_PIECEWISE"),
    ("gemma2", "TRITON_ATTN", "V2", "FULL_DECODE_ONLY"),
    ("gemma2", "TRITON_ATTN", "V1", "FULL_DECODE_ONLY"),
    ("gemma2", "FLASH_ATTN", "V2", "FULL_DECODE_ONLY"),
    ("gemma2", "FLASH_ATTN", "V2", "FULL_AND_PIECEWISE"),
    ("mamba", "FLASH_ATTN", "V2", "FULL_DECODE_ONLY"),
    ("mamba", "FLASH_ATTN", "V1", "FULL_DECODE_ONLY", BLOCKS),
    ("mamba2", "FLASH_ATTN", "V2", "FULL_DECODE_ONLY"),
    ("mamba2", "FLASH_ATTN", "V1", "FULL_DECODE_ONLY", BLOCKS),
    ("granite-hybrid", "FLASH_ATTN", "V2", "FULL_DECODE_ONLY"),
    ("granite-hybrid", "FLASH_ATTN", "V1", "FULL_DECODE_ONLY", BLOCKS),
    ("granite-hybrid", "FLASH_ATTN", "V2", "FULL_AND_PIECEWISE"),
    ("lfm2", "FLASH_ATTN", "V2", "FULL_DECODE_ONLY"),
    ("lfm2", "FLASH_ATTN", "V1", "FULL_DECODE_ONLY", BLOCKS),
    ("qwen3-next", "FLASH_ATTN", "V2", "FULL_DECODE_ONLY", TRITON_DELTA),
    ("qwen3-next", "FLASH_ATTN", "V1", "FULL_DECODE_ONLY", TRITON_DELTA, BLOCKS),
    ("deepseek", "FLASH_ATTN_MLA", "V2", "FULL_DECODE_ONLY"),
    ("llama", "TRITON_ATTN", "V2", "FULL"),
    ("llama", "TRITON_ATTN", "V1", "FULL"),
    ("llama", "FLASH_ATTN", "V2", "FULL"),
    ("llama", "FLASH_ATTN", "V2", "FULL_AND_PIECEWISE", BREAKABLE),
    ("llama", "FLASH_ATTN", "V1", "FULL_AND_PIECEWISE", BREAKABLE),
    ("llama", "TRITON_ATTN", "V2", "PIECEWISE", BREAKABLE),
    ("qwen2-moe", "FLASH_ATTN", "V2", "FULL_AND_PIECEWISE", BREAKABLE),
    ("deepseek", "TRITON_MLA", "V2", "FULL_AND_PIECEWISE", BREAKABLE),
    ("llama", "FLASH_ATTN", "V2", "FULL_DECODE_ONLY", FP8),
    ("qwen2-moe", "FLASH_ATTN", "V2", "FULL_DECODE_ONLY", FP8),
    ("llama", "TRITON_ATTN", "V2", "FULL_DECODE_ONLY", FP8_CACHE),
    ("llama", "FLASH_ATTN", "V2", "FULL_DECODE_ONLY", GPTQ),
    ("llama", "FLASH_ATTN", "V2", "FULL_DECODE_ONLY", AWQ),
    ("llama", "FLASH_ATTN", "V2", "FULL_DECODE_ONLY", "async_scheduling=true"),
    ("llama", "FLASH_ATTN", "V2", "FULL_DECODE_ONLY", OFFLOAD),
    ("llama", "FLASH_ATTN", "V2", "FULL_AND_PIECEWISE", OFFLOAD),
    ("qwen2-vl", "FLASH_ATTN", "V2", "FULL_DECODE_ONLY"),
    ("qwen2-vl", "FLASH_ATTN", "V1", "FULL_DECODE_ONLY"),
    ("qwen2-vl", "FLASH_ATTN", "V2", "FULL_AND_PIECEWISE"),
    ("qwen2-vl", "FLASH_ATTN", "V2", "FULL_DECODE_ONLY", "language_model_only=true"),
    ("llama", "FLASH_ATTN", "V1", "FULL_DECODE_ONLY", NGRAM),
    ("llama", "FLASH_ATTN", "V2", "FULL_DECODE_ONLY", NGRAM),
    ("llama", "FLASH_ATTN", "V2", "FULL_DECODE_ONLY", EAGLE),
    ("llama", "TRITON_ATTN", "V2", "FULL_DECODE_ONLY", EAGLE),
    ("llama", "FLASH_ATTN", "V2", "FULL_AND_PIECEWISE", EAGLE),
    ("llama", "FLASH_ATTN", "V2", "FULL_DECODE_ONLY", EAGLE3),
    ("llama", "FLASH_ATTN", "V2", "FULL_AND_PIECEWISE", EAGLE3),
    ("deepseek-v3", "TRITON_MLA", "V2", "FULL_DECODE_ONLY", MTP),
    ("deepseek-v3", "TRITON_MLA", "V2", "FULL_AND_PIECEWISE", MTP),
    ("llama", "FLASH_ATTN", "V2", "FULL_DECODE_ONLY", *LORA),
    ("llama", "FLASH_ATTN", "V2", "FULL_AND_PIECEWISE", *LORA),
    ("llama", "FLASH_ATTN", "V1", "FULL_DECODE_ONLY", *LORA),
    ("llama", "FLASH_ATTN", "V1", "FULL_AND_PIECEWISE", *LORA),
]
