"""The factors that an artifact is valid for.

In: vLLM's configuration, and the variables that its compiled code depends on. Out: factors, strings by name. Fails: never.
"""

import copy
import hashlib
import json

from . import checkpoints

# The variables in vLLM's key of compiled code that hold a path. The path depends on the user's home and the installation.
PLACES = "VLLM_CONFIG_ROOT", "VLLM_XLA_CACHE_PATH", "VLLM_RUST_FRONTEND_PATH"


def digest(text):
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def weights(loader):
    """Loaders that read files leave the same weights. If one of them makes other allocations, the start is native."""
    # mutant: weights that no file has
    return "dummy" if loader == "dummy" else "files"


def settings(config):
    """vLLM's own hash of all settings that its compiled code depends on, without the model's place: its configuration counts."""
    # mutant: configuration stays as it is
    config, config.model_config, config.speculative_config = copy.copy(config), copy.copy(config.model_config), copy.copy(config.speculative_config)
    config.model_config.model, config.model_config.revision = "", None
    if draft(config):
        config.speculative_config.draft_model_config = copy.copy(draft(config))
        config.speculative_config.draft_model_config.model, config.speculative_config.draft_model_config.revision = "", None
    return config.compute_hash()


def draft(config):
    """The configuration of a separate draft model, or None."""
    return getattr(config.speculative_config, "draft_model_config", None)


def factors(config, vllm, torch, cuda, environment):
    model, cache, scheduler = config.model_config, config.cache_config, config.scheduler_config
    # mutant: variables that say where something lies
    environment = {name: value for name, value in environment.items() if name not in PLACES}
    arguments = [
        settings(config),
        model.max_model_len,
        model.dtype,
        cache.gpu_memory_utilization,
        cache.block_size,
        cache.cache_dtype,
        scheduler.max_num_seqs,
        scheduler.max_num_batched_tokens,
        config.compilation_config.cudagraph_capture_sizes,
        digest(json.dumps(environment, sort_keys=True, default=str)),
    ]
    speculative, multimodal = config.speculative_config, model.multimodal_config
    if speculative:
        # mutant: drafts of a step
        arguments.append(f"{speculative.method}:{speculative.num_speculative_tokens}")
    if draft(config):
        # mutant: draft model
        arguments.append(digest(checkpoints.form(draft(config).hf_config)))
    if multimodal:
        # mutant: files of a prompt
        arguments.append(f"{multimodal.language_model_only} {multimodal.limit_per_prompt} {multimodal.mm_processor_kwargs}")
    if config.kv_transfer_config:
        # mutant: connector that may want another layout of the KV cache
        arguments.append(config.kv_transfer_config.kv_connector)
    if model.enable_cumem_allocator:
        # mutant: allocator of sleep mode
        arguments.append("cumem")
    return {
        "engine.name": "vllm",
        "engine.version": vllm,
        "engine.framework": "torch " + torch,
        "cuda.version": cuda,
        "engine.args": " ".join(str(a) for a in arguments),
        "model.config": digest(checkpoints.form(model.hf_config)),
        "model.weights": weights(config.load_config.load_format),
    }
