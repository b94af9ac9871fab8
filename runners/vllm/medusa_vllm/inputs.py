"""The tensors that a decode step's graph reads and vLLM writes before each replay.

In: a V2 model runner whose KV cache exists. Out: their names, and the values that verification may put into them.
"""

import torch

import medusa


def named(runner):
    """(name, tensor, bounds) for each. Left out is query_start_loc: only ascending values make sense in it."""
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


def prepare(runner):
    """One token a sequence: what every decode graph may find in query_start_loc. The verifying runs, of which only one
    has captured, do this before they compare."""
    start = runner.input_buffers.query_start_loc
    start.copy_(torch.arange(start.numel(), dtype=start.dtype))
    torch.cuda.synchronize()
