"""The tensors that a decode step's graph refers to.

In: the model, and a V2 model runner whose KV cache exists. Out: their names, and the values that verification may put into them.
"""

import torch

import medusa


def once(found, seen):
    """Drops what is not on the device, and what starts where another that has a name starts."""
    for name, t, role, bounds in found:
        if t.is_cuda and t.numel() and t.data_ptr() not in seen:
            seen.add(t.data_ptr())
            yield name, t.detach(), role, bounds


def weights(model):
    return [(name, t, medusa.WEIGHT, {}) for name, t in [*model.named_parameters(), *model.named_buffers()]]


def cached(runner):
    """What exists once the KV cache does."""
    found = [(name, t, medusa.INPUT, bounds) for name, t, bounds in named(runner)]
    found += [(f"kv_cache.{i}", t, medusa.KV, {}) for i, t in enumerate(runner.kv_caches)]
    return found + [(name, t, medusa.WEIGHT, {}) for name, t in others(runner)]


def named(runner):
    """(name, tensor, bounds) for each that vLLM writes before a replay and that takes any value within bounds."""
    buffers, tables = runner.input_buffers, runner.block_tables
    blocks = runner.kv_cache_config.num_blocks
    found = [
        ("input_ids", buffers.input_ids, {"lo": 0, "hi": runner.vocab_size}),
        ("positions", buffers.positions, {"lo": 0, "hi": runner.max_model_len}),
        ("seq_lens", buffers.seq_lens, {"lo": 1, "hi": runner.max_model_len}),
    ]
    for i, table in enumerate(tables.input_block_tables):
        found.append((f"block_table.{i}", table, {"lo": 0, "hi": blocks}))
    slots = blocks * min(tables.block_sizes)
    found.append(("slot_mappings", tables.slot_mappings, {"lo": 0, "hi": slots, "fill": medusa.DISTINCT}))
    return found


def attributes(prefix, thing):
    """(name, tensor) for each tensor that an object holds as an attribute, or in a list that is one."""
    for key, value in vars(thing).items():
        for i, t in enumerate(value if isinstance(value, (list, tuple)) else [value]):
            if isinstance(t, torch.Tensor):
                yield f"{prefix}.{key}.{i}", t


def others(runner):
    """(name, tensor) for what is the engine's own: it has the same place and meaning in every start, and is not filled.
    Part of it are metadata that attention backends write for each step into buffers that they keep, and query_start_loc,
    in which only ascending values make sense. Arrays of addresses, which differ from start to start, stay without a
    name: no decode graph reads them, and one that did would be refused."""
    yield from (named for named in owned(runner) if "_ptrs" not in named[0])


def owned(runner):
    yield from attributes("input", runner.input_buffers)
    yield from attributes("block_tables", runner.block_tables)
    for i, group in enumerate(g for groups in runner.attn_groups for g in groups):
        for j, builder in enumerate(group.metadata_builders):
            yield from attributes(f"attention.{i}.{j}", builder)
    for name, module in runner.model.named_modules():
        yield from attributes(name, module)
        if hasattr(module, "impl"):
            yield from attributes(name + ".impl", module.impl)


def prepare(runner):
    """One token a sequence: what every decode graph may find in query_start_loc. Of the verifying runs only one has captured,
    and so written the output. Both do this before they compare."""
    start = runner.input_buffers.query_start_loc
    start.copy_(torch.arange(start.numel(), dtype=start.dtype))
    runner.cudagraph_manager.hidden_states.zero_()
    torch.cuda.synchronize()
