"""The tensors that a decode step's graph refers to.

In: the model, and a model runner whose KV cache exists. Out: their names, and the values that verification may put into them.
"""

import dataclasses
import hashlib

import torch
from vllm.v1.sample.ops import topk_topp_triton
from vllm.v1.utils import CpuGpuBuffer
from vllm.v1.worker.workspace import current_workspace_manager

import medusa_graphs as medusa

from . import adapters, drafts, queries


def once(found, seen):
    """Drops tensors that are not on the device, and those that start at the address of another that has a name."""
    for name, t, role, bounds in found:
        if t.is_cuda and t.numel() and t.data_ptr() not in seen:
            seen.add(t.data_ptr())
            yield name, t.detach(), role, bounds


def attention(runner):
    """Groups of attention layers of the model and of its draft model, by prefix. A draft model may have another backend."""
    # mutant: attention of a draft model
    groups = {"attention": runner.attn_groups, "draft.attention": getattr(drafts.speculator(runner), "attn_groups", [])}
    return {prefix: [group for of_cache in found for group in of_cache] for prefix, found in groups.items()}


def weights(runner):
    found = ((prefix + name, t) for prefix, model in models(runner).items() for name, t in [*model.named_parameters(), *model.named_buffers()])
    return [(name, t, medusa.WEIGHT, {}) for name, t in found]


def made(runner):
    """The tensors that a first forward has made."""
    return [(name, t, medusa.WEIGHT, {"addresses": t.dtype == torch.uint64}) for name, t in adapters.tables()] if adapters.wrappers(runner) else []


def cached(runner, blocks=None):
    """The tensors that exist once the KV cache does. blocks: how many have memory, if not all."""
    most = runner.kv_cache_config.num_blocks
    blocks = blocks or most
    found = [(name, t, medusa.INPUT, bounds) for name, t, bounds in named(runner, blocks)]
    found += [(f"kv_cache.{i}", t if blocks == most else t[: t.shape[0] * blocks // most], medusa.KV, {}) for i, t in enumerate(caches(runner))]
    # mutant: workspace of attention
    found += [(f"workspace.{i}", t, medusa.SCRATCH, {}) for i, t in enumerate(workspaces())]
    return found + [(name, t, medusa.WEIGHT, {}) for name, t in others(runner)]


def workspaces():
    """Memory that forwards compute in, one after another. Backends of attention enlarge it once the KV cache exists."""
    return [t for t in current_workspace_manager()._current_workspaces if t is not None]


def sampled():
    """Memory that the kernels of top-k and top-p compute in and keep, once a first step has drawn tokens."""
    kept = [*topk_topp_triton._TRITON_BUFFER_CACHE.values(), *getattr(topk_topp_triton, "_TRITON_SPLIT_CACHE", {}).values()]
    # mutant: memory of top-p
    tensors = [t for held in kept for t in (held.values() if isinstance(held, dict) else [held])]
    return [(f"sampler.{i}", t, medusa.SCRATCH, {}) for i, t in enumerate(tensors)]


def caches(runner):
    """The tensors of the KV cache. A state space layer has several states, and attention layers use the same memory: then each storage is one tensor."""
    if all(isinstance(held, torch.Tensor) for held in runner.kv_caches):
        return runner.kv_caches
    tensors = [t for held in runner.kv_caches for t in ([held] if isinstance(held, torch.Tensor) else held)]
    storages = {t.untyped_storage().data_ptr(): t.untyped_storage() for t in tensors}
    return [torch.empty(0, dtype=runner.model_config.dtype, device=tensors[0].device).set_(storage) for storage in storages.values()]


@dataclasses.dataclass
class Buffers:
    """The tensors that vLLM writes for each step, wherever a model runner keeps them."""

    input_ids: torch.Tensor
    vocabulary: int
    positions: torch.Tensor
    seq_lens: torch.Tensor
    query_start_loc: torch.Tensor
    block_tables: list
    slots: list  # name, tensor, tokens a block
    owners: dict  # objects whose tensors are the engine's own, by the prefix of their names


def v1_buffers(runner):
    tables = runner.input_batch.block_table.block_tables
    return Buffers(
        input_ids=runner.input_ids.gpu,
        vocabulary=runner.model_config.get_vocab_size(),
        positions=runner.positions,
        seq_lens=runner.seq_lens,
        query_start_loc=runner.query_start_loc.gpu,
        block_tables=[t.block_table.gpu for t in tables],
        slots=[(f"slot_mapping.{i}", t.slot_mapping.gpu, t.block_size) for i, t in enumerate(tables)],
        owners={"input": runner},
    )


def v2_buffers(runner):
    inputs, tables = runner.input_buffers, runner.block_tables
    return Buffers(
        input_ids=inputs.input_ids,
        vocabulary=runner.vocab_size,
        positions=inputs.positions,
        seq_lens=inputs.seq_lens,
        query_start_loc=inputs.query_start_loc,
        block_tables=tables.input_block_tables,
        slots=[("slot_mappings", tables.slot_mappings, min(tables.block_sizes))],
        owners={"input": inputs, "block_tables": tables} | model_states(runner.model_state) | drafted(runner) | requests(runner),
    )


def drafted(runner):
    found = drafts.speculator(runner)
    return {"draft.input": found.input_buffers} if found else {}


def requests(runner):
    """The state of each request between steps. Warm-up writes it: the tokens that it draws depend on old bytes."""
    # mutant: counts of tokens that a request has
    parts = {"requests": getattr(runner, "req_states", None), "penalties": getattr(getattr(runner, "sampler", None), "penalties_state", None)}
    return {name: part for name, part in parts.items() if part is not None}


def models(runner):
    """The model, and its draft model."""
    found = drafts.speculator(runner)
    return {"": runner.model} | ({"draft.": found.model} if found else {})


def model_states(state):
    """The objects that prepare special inputs of a model: positions in several dimensions, embeddings in place of tokens."""
    parts = {"model": state, "rope": getattr(state, "rope_state", None), "encoder": getattr(state, "encoder_runner", None)}
    return {name: part for name, part in parts.items() if part is not None}


def buffers(runner):
    return v2_buffers(runner) if hasattr(runner, "input_buffers") else v1_buffers(runner)


def named(runner, blocks):
    """(name, tensor, bounds) for each tensor that vLLM writes before a replay and that takes any value within bounds."""
    b, length = buffers(runner), runner.model_config.max_model_len
    found = [
        ("input_ids", b.input_ids, {"lo": 0, "hi": b.vocabulary}),
        ("positions", b.positions, {"lo": 0, "hi": length}),
        ("seq_lens", b.seq_lens, lengths(runner)),
    ]
    found += [(f"block_table.{i}", t, {"lo": 0, "hi": blocks, "fill": medusa.BLOCK}) for i, t in enumerate(b.block_tables)]
    found += drafts.named(runner, lengths(runner))
    found += [(name, t, {}) for name, t in adapters.slots(modules(runner.model))]
    written = [*adapters.owners(runner), *({"draft": drafts.speculator(runner)}.items() if drafts.speculator(runner) else ())]
    found += [(name, t, zeros(t)) for prefix, owner in written for name, t in attributes(prefix, owner)]
    return found + [(name, t, {"lo": 0, "hi": blocks * size, "fill": medusa.DISTINCT}) for name, t, size in b.slots]


def lengths(runner):
    """Bounds of a sequence's length in a step: it has at least the tokens that the step computes of it."""
    length = runner.model_config.max_model_len
    # mutant: sequences that are shorter than their part of a step
    return {"lo": min(queries.longest(runner.vllm_config), length - 1), "hi": length}


def held(thing):
    """(name, value) for each attribute of an object. If the attribute is a list, each element counts."""
    for key, value in vars(thing).items():
        for i, v in enumerate(value if isinstance(value, (list, tuple)) else [value]):
            yield f"{key}.{i}", v


def attributes(prefix, thing):
    """(name, tensor) for each tensor that an object holds, alone or with a copy on the host (CpuGpuBuffer)."""
    for name, t in held(thing):
        t = t.gpu if isinstance(t, CpuGpuBuffer) else t
        if isinstance(t, torch.Tensor):
            yield f"{prefix}.{name}", t


def others(runner):
    """(name, tensor) of the engine's own tensors. Each has the same place and meaning in every start, and verification does not
    fill it. Among them are the metadata that attention backends write for each step into buffers that they keep, and
    query_start_loc, in which only ascending values make sense. Arrays of addresses differ from start to start and get no
    name: no decode graph reads them, and a graph that did would be refused."""
    yield from (named for named in owned(runner) if "_ptrs" not in named[0])


def owned(runner):
    for prefix, owner in buffers(runner).owners.items():
        yield from attributes(prefix, owner)
    for prefix, groups in attention(runner).items():
        for i, group in enumerate(groups):
            for j, builder in enumerate(group.metadata_builders):
                yield from attributes(f"{prefix}.{i}.{j}", builder)
    for prefix, model in models(runner).items():
        yield from ((prefix + name, t) for name, t in modules(model))


def modules(model):
    for name, module in model.named_modules():
        yield from attributes(name, module)
        if hasattr(module, "impl"):
            yield from attributes(name + ".impl", module.impl)


def digest(t):
    """A digest of the memory from a tensor's first element to its last."""
    last = sum((n - 1) * stride for n, stride in zip(t.shape, t.stride()))
    return hashlib.sha256(t.as_strided((last + 1,), (1,)).cpu().view(torch.uint8).numpy()).digest()


def writes(t):
    """The values that a write changes: a digest of the memory, and torch's count of writes, because a step may write the same bytes again."""
    return digest(t), None if t.is_inference() else t._version


def zeros(t):
    """Bounds of an input whose meaning is unknown: it is 0, so that an index that a kernel reads from it is valid. Floats need no bounds."""
    return {} if t.is_floating_point() else {"lo": 0, "hi": 1}


def even_queries(runner, batch=None):
    """Sets query_start_loc for a batch whose requests have the same number of tokens each; without a batch, for one token each."""
    start = buffers(runner).query_start_loc
    start.copy_(torch.tensor(queries.starts(start.numel(), batch), dtype=start.dtype))
