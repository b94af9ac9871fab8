"""Which starts Medusa takes part in.

In: versions, and vLLM's configuration (only attributes are read, so that tests need no vLLM). Out: None, or the reason for
a native start, in a few words. Fails: never.
"""

import contextlib
import os
import re

from . import contract, labels

TRY = "try"  # of MEDUSA_VLLM

# The releases that were tested, each with the torch that it pins.
SUPPORTED = {"0.26.0": "2.11", "0.28.0": "2.13", "0.30.0": "2.13", "0.31.0": "2.13", "0.32.0": "2.13", "0.33.0": "2.14"}
ELASTIC = ("0.26.0",)  # on which an elastic KV cache was tested
RANKS = ("0.26.0", "0.33.0")  # with which several ranks were tested
ENGINES = ("0.26.0",)  # with which several engines (data parallelism) were tested
COMPILED = 3  # vLLM's CompilationMode.VLLM_COMPILE
# Passes of the compiler whose kernels hold a collective operation.
FUSED = "fuse_allreduce_rms", "fuse_gemm_comms"
SPECULATION = None, "ngram", "ngram_gpu"  # without a draft model, and so without graphs of its own
DRAFTS = "eagle", "eagle3", "mtp"  # by a draft model, on the V2 runner
CONNECTORS = ("OffloadingConnector",)  # of KV caches, on the V2 runner
MODES = "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE", "PIECEWISE", "FULL"


def version_reason(vllm, torch, difference, wanted=""):
    """Compares the installed vLLM with a supported release, because vLLM moves its modules between releases. The supported release is the
    newest that is not newer. difference(release) names a definition that differs, or is None (fingerprint.py): then the installed one is taken
    for the supported one. wanted: MEDUSA_VLLM."""
    if wanted not in ("", TRY):
        return f"{contract.ENV_VLLM}={wanted} (known: {TRY})"
    # mutant: user who wants to try
    if wanted == TRY:
        return None
    release = vllm.split("+")[0]
    known = nearest(release)
    differs = difference(known)
    # mutant: sources of vLLM that differ
    if differs:
        but = "" if release == known else f" (supported: {', '.join(SUPPORTED)})"
        return f"vLLM {vllm}{but} differs from {known} in {differs} ({contract.ENV_VLLM}={TRY} lets verification decide)"
    # mutant: one minor release of torch
    if not torch.startswith(SUPPORTED[known] + "."):
        return f"torch {torch} (supported: {SUPPORTED[known]})"
    return None


def nearest(release):
    """The newest supported release that is not newer, or the oldest."""
    wanted = numbers(release)
    # mutant: supported release that an unknown one is compared with
    older = [known for known in SUPPORTED if numbers(known) <= wanted]
    return max(older, key=numbers) if older else min(SUPPORTED, key=numbers)


def numbers(release):
    """The leading numbers of a version, so that 0.34.0rc1 is 0.34.0. A build of no release may have none."""
    leading = re.match(r"\d+(?:\.\d+)*", release)
    return [int(n) for n in leading.group().split(".")] if leading else []


def config_reason(config):
    parallel, model, compilation, cache = config.parallel_config, config.model_config, config.compilation_config, config.cache_config
    speculative = config.speculative_config
    method = speculative and speculative.method
    drafts = method in DRAFTS
    connector = config.kv_transfer_config and config.kv_transfer_config.kv_connector
    checks = [
        (getattr(parallel, "enable_dbo", False), "two batches that overlap (enable_dbo)"),
        # mutant: adapters of an encoder
        (getattr(config.lora_config, "enable_tower_connector_lora", False), "adapters of an encoder (enable_tower_connector_lora)"),
        # mutant: speculation that has graphs of its own
        (method not in SPECULATION + DRAFTS, f"speculative decoding by {method} (supported: {', '.join(filter(None, SPECULATION + DRAFTS))})"),
        # mutant: drafts of changing length
        (drafts and getattr(speculative, "num_speculative_tokens_per_batch_size", None), "drafts whose length depends on the batch"),
        (getattr(speculative, "enable_adaptive_verification", False), "adaptive verification of drafts"),
        # mutant: adapters and a draft model
        (drafts and config.lora_config is not None, "LoRA with a draft model"),
        # mutant: connector in sleep mode
        (connector and model.enable_sleep_mode, "a KV connector in sleep mode"),
        # mutant: connectors that were not tried
        (connector not in (None, *CONNECTORS), f"the KV connector {connector} (supported: {', '.join(CONNECTORS)})"),
        (model.enforce_eager, "graphs are switched off (enforce_eager)"),
        # mutant: backend of sleep mode
        (model.enable_sleep_mode and model.sleep_mode_backend != "cumem", f"sleep mode's backend {model.sleep_mode_backend} (supported: cumem)"),
        (getattr(config, "use_cumem_cudagraph_pool", False), "graphs in the memory of sleep mode's allocator"),
        # mutant: helper that keeps the graph manager
        (cache.kv_sharing_fast_prefill, "fast prefill (kv_sharing_fast_prefill), which keeps vLLM's own graph manager"),
        (config.load_config.load_format == "ipc_cache", "weights that lie in another process (load_format ipc_cache)"),
        # mutant: graphs of an encoder
        (getattr(compilation, "cudagraph_mm_encoder", False), "graphs of an encoder (cudagraph_mm_encoder)"),
        (model.is_encoder_decoder, "an encoder beside the decoder"),
        (model.runner_type != "generate", "a model that does not generate"),
        (compilation.use_inductor_graph_partition, "Inductor's graph partition"),
    ]
    return next((reason for applies, reason in checks if applies), None) or mode_reason(config)


def mode_reason(config):
    """The user chooses a mode, and attention backends have the last word: some have no graphs for some settings."""
    mode = config.compilation_config.cudagraph_mode
    # mutant: modes without graphs
    return f"cudagraph_mode {mode and mode.name} (supported: {', '.join(MODES)})" if mode is None or mode.name not in MODES else None


def ranks_reason(config, vllm):
    """Several ranks have to be those of one model on one machine, as the multiprocess executor starts them."""
    parallel, several = config.parallel_config, config.parallel_config.world_size > 1
    executor = parallel.distributed_executor_backend
    compilation = config.compilation_config
    passes = getattr(compilation, "pass_config", None) if getattr(compilation, "mode", 0) == COMPILED else None
    fused = [name for name in FUSED if getattr(passes, name, False)]
    executor = executor if isinstance(executor, str) else getattr(executor, "__name__", type(executor).__name__)
    checks = [
        (os.environ.get(contract.ENV_PEERS), "ranks without the others (medusa materialize --ranks-alone)"),
        # mutant: ranks with different layers
        (parallel.pipeline_parallel_size > 1, "ranks with different layers (pipeline_parallel_size)"),
        (getattr(parallel, "prefill_context_parallel_size", 1) > 1, "ranks that share a prefill's context (prefill_context_parallel_size)"),
        (getattr(parallel, "decode_context_parallel_size", 1) > 1, "ranks that share the KV cache (decode_context_parallel_size)"),
        (getattr(parallel, "nnodes", 1) > 1, "ranks on several machines (nnodes)"),
        # mutant: executors of several ranks
        (several and executor != "mp", f"several ranks under the executor {executor} (supported: mp)"),
        # mutant: kernels that hold a collective operation
        (several and fused, f"kernels that hold a collective operation ({', '.join(fused)})"),
        (getattr(parallel, "enable_eplb", False), "experts that move (enable_eplb)"),
        # mutant: adapters of several ranks
        (several and config.lora_config is not None, "LoRA on several ranks"),
        # mutant: draft model of several ranks
        (several and config.speculative_config and config.speculative_config.method in DRAFTS, "a draft model on several ranks"),
        # mutant: connector of several ranks
        (several and config.kv_transfer_config is not None, "a KV connector on several ranks"),
        # mutant: ranks that sleep
        (several and config.model_config.enable_sleep_mode, "sleep mode of several ranks"),
        (several and vllm.split("+")[0] not in RANKS, f"several ranks with vLLM {vllm} (supported: {', '.join(RANKS)})"),
    ]
    return next((reason for applies, reason in checks if applies), None)


def engines_reason(config, vllm, run):
    """Several engines (data parallelism) have to be those of one command on one machine, which share nothing. One engine makes their artifact."""
    parallel = config.parallel_config
    checks = [
        # mutant: recording of several engines
        (run != contract.RUN_RESTORE, "an artifact is made by one engine (leave data_parallel_size out: all engines of a start can be restored from it)"),
        # mutant: engines that share experts
        (config.model_config.is_moe, "engines that share experts (data_parallel_size)"),
        # mutant: engines of several ranks
        (parallel.world_size > 1, f"engines of {parallel.world_size} ranks each (data_parallel_size)"),
        # mutant: engines of several commands
        (parallel.data_parallel_external_lb or parallel.data_parallel_hybrid_lb, "engines that several commands start (data_parallel_external_lb, data_parallel_hybrid_lb)"),
        # mutant: engines of several machines
        (parallel.data_parallel_size_local != parallel.data_parallel_size, "engines on several machines (data_parallel_size_local)"),
        # mutant: engines that Ray starts
        (parallel.data_parallel_backend != "mp", f"engines under {parallel.data_parallel_backend} (data_parallel_backend, supported: mp)"),
        # mutant: devices that are chosen by number
        (getattr(parallel, "assigned_physical_gpu_ids", None) is not None, "several engines on chosen devices (device_ids)"),
        (vllm.split("+")[0] not in ENGINES, f"several engines with vLLM {vllm} (supported: {', '.join(ENGINES)})"),
    ]
    return next((reason for applies, reason in checks if applies), None)


def runner_reason(config, v2, vllm):
    """A step of the V1 runner takes what the connector's scheduler has decided. The V2 runner has steps without a connector. vLLM
    0.26.0 itself runs state space layers on the V1 runner. On its V2 runner, and with drafts by MTP, recordings end with an error."""
    model, first = config.model_config, vllm.split("+")[0] == "0.26.0"
    checks = [
        # mutant: connector of the V1 runner
        (config.kv_transfer_config and not v2, "a KV connector on the V1 runner"),
        # mutant: state space layers on the first V2 runner
        (first and v2 and (model.is_hybrid or model.is_attention_free), f"state space layers on the V2 runner of vLLM {vllm}"),
        # mutant: drafts by MTP of the first V2 runner
        (first and config.speculative_config and config.speculative_config.method == "mtp", f"speculative decoding by mtp with vLLM {vllm}"),
    ]
    return next((reason for applies, reason in checks if applies), None)


def backend_reason(backends):
    """backends: names of the attention backends in use. FlashInfer makes a wrapper for each batch size while it captures. A
    start without captures would lack these wrappers."""
    supported = {"FLASH_ATTN", "TRITON_ATTN", "TRITON_MLA", "FLASH_ATTN_MLA", "MAMBA1_ATTN", "MAMBA2_ATTN", "SHORT_CONV_ATTN", "GDN_ATTN"}
    # mutant: attention backends
    other = sorted(set(backends) - supported)
    return f"attention backend {', '.join(other)} (supported: {', '.join(sorted(supported))})" if other else None


def delta_reason(builders):
    """builders: those of metadata for attention. Layers of gated delta rules have several implementations of prefills."""
    found = {getattr(b, "gdn_prefill_backend", None) for b in builders}
    # mutant: prefills of gated delta rules
    other = sorted(found - {None, "triton"})
    return f"gated delta rules whose prefills {', '.join(other)} computes (supported: triton)" if other else None


def elastic_reason(config, vllm):
    """Why an elastic KV cache is not supported, or None. The scheduler has to learn the number of blocks. Releases allocate the cache in different
    ways."""
    # mutant: release whose KV cache is allocated otherwise
    if vllm.split("+")[0] not in ELASTIC:
        return f"an elastic KV cache with vLLM {vllm} (supported: {', '.join(ELASTIC)})"
    # mutant: elastic KV cache with a connector
    if config.kv_transfer_config is not None:
        return "an elastic KV cache with a KV connector"
    # mutant: elastic KV cache in sleep mode
    if config.model_config.enable_cumem_allocator:
        return "an elastic KV cache with sleep mode's allocator"
    # mutant: state space models
    if config.model_config.is_hybrid or config.model_config.is_attention_free:
        return "an elastic KV cache of state space layers"
    executor = config.parallel_config.distributed_executor_backend
    # mutant: scheduler in the worker's process
    if executor != "uni":
        return f"an elastic KV cache under the executor {executor} (supported: uni)"
    return None


def graphs_reason(runner):
    """Graphs that vLLM captures outside of its graph manager are not supported."""
    capture = getattr(type(getattr(runner, "model_state", None)), "capture_inner_cudagraphs", None)
    # mutant: graphs within a model
    if capture and not capture.__module__.endswith(".model_states.interface"):
        return f"graphs within the model ({capture.__qualname__})"
    return None


def descriptor_reason(*kinds):
    """A label has to contain all fields of a descriptor."""
    fields = labels.unknown(*kinds)
    return f"graphs of vLLM have properties that are not known here ({', '.join(fields)})" if fields else None


@contextlib.contextmanager
def asking(cache, needed, total):
    """vLLM refuses to start if less memory is free than the share of the device that its profile may fill. A start without a profile needs only the
    bytes that the artifact records, and the session has found them free. So the share is lowered to these bytes meanwhile. needed: bytes of the
    KV cache, or None if vLLM profiles."""
    share = cache.gpu_memory_utilization
    # mutant: memory that a restored start asks for
    if needed is not None:
        cache.gpu_memory_utilization = min(share, needed / total())
    try:
        yield
    finally:
        # mutant: share of the device that the user allows
        cache.gpu_memory_utilization = share


def size_reason(size, total):
    """Why the KV cache cannot have the size that vLLM's profile leaves, or None. Estimates of graph memory have made that size negative."""
    # mutant: size of a KV cache that cannot be
    if not 0 < size <= total:
        return f"vLLM's profile leaves {size} bytes for the KV cache, of {total} (gpu_memory_utilization may be too low)"
    return None


def resources_reason(before, after):
    """before, after: keys of the memory that vLLM keeps for kernels and never frees. If a capture made such memory, only the graphs of a restored
    start would know it."""
    # mutant: memory that a capture makes for good
    made = sorted(map(str, set(after) - set(before)))
    return f"captures make persistent workspaces ({', '.join(made)})" if made else None
