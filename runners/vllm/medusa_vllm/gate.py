"""Which starts Medusa takes part in.

In: versions, and vLLM's configuration (only attributes are read, so that tests need no vLLM). Out: None, or the reason for
a native start, in a few words. Nothing here fails.
"""

VLLM = "0.26.0"
TORCH = "2.11"
MODES = "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE", "PIECEWISE"


def version_reason(vllm, torch):
    """vLLM moves its modules between releases, so exactly one is supported, with the torch that it pins."""
    # mutant: one release of vLLM
    if vllm.split("+")[0] != VLLM:
        return f"vLLM {vllm} (supported: {VLLM})"
    # mutant: one minor release of torch
    if not torch.startswith(TORCH + "."):
        return f"torch {torch} (supported: {TORCH})"
    return None


def config_reason(config):
    parallel, model, compilation = config.parallel_config, config.model_config, config.compilation_config
    mode = compilation.cudagraph_mode
    checks = [
        # mutant: several ranks of vLLM
        (parallel.world_size > 1 or parallel.data_parallel_size > 1, "more than one rank"),
        (config.lora_config is not None, "LoRA"),
        (config.speculative_config is not None, "speculative decoding"),
        (config.kv_transfer_config is not None, "a KV connector"),
        (model.enforce_eager, "graphs are switched off (enforce_eager)"),
        (model.enable_cumem_allocator, "sleep mode's allocator"),
        (model.multimodal_config is not None, "a multimodal model"),
        (model.runner_type != "generate", "a model that does not generate"),
        # mutant: state space models
        (model.is_hybrid or model.is_attention_free, "state space layers"),
        (model.use_mla, "multi-head latent attention"),
        (compilation.use_inductor_graph_partition, "Inductor's graph partition"),
        (mode is None or mode.name not in MODES, f"cudagraph_mode {mode and mode.name} (supported: {', '.join(MODES)})"),
    ]
    return next((reason for applies, reason in checks if applies), None)


def backend_reason(backends):
    """Names of the attention backends in use. FlashInfer makes a wrapper for each batch size while it captures, which a
    start without captures would lack."""
    supported = {"FLASH_ATTN", "TRITON_ATTN"}
    # mutant: attention backends
    other = sorted(set(backends) - supported)
    return f"attention backend {', '.join(other)} (supported: {', '.join(sorted(supported))})" if other else None
