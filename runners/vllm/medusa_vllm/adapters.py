"""The buffers that LoRA's kernels read besides a step's inputs: the weights of adapters, and the adapter of each row.

In: a model runner. Out: its buffers, and for a replay the state that vLLM's captures have: the rows use dummy adapters in turn. Fails: as vLLM's own
functions do. A model runner without LoRA has none of these buffers.

vLLM copies an adapter's weights into a slot of buffers that each layer has, before the first step that needs it. Graphs read the buffers.
"""

import contextlib

import numpy as np
import torch


def wrappers(runner):
    manager = getattr(runner, "lora_manager", None)
    return manager._adapter_manager.punica_wrapper_mapping if manager else {}


def slots(found):
    """The tensors of the model that hold weights of adapters."""
    return [(name, t) for name, t in found if "lora_a_stacked" in name or "lora_b_stacked" in name]


def tables():
    """(name, tensor) of the tables that vLLM makes once for each layer's slots, at the first forward with adapters: the addresses and strides of slots."""
    from vllm.lora.ops.triton_ops import utils  # and Triton with it, for starts with adapters alone

    for kind, made in {"a": utils._LORA_A_PTR_DICT, "b": utils._LORA_B_PTR_DICT}.items():
        for i, values in enumerate(made.values()):
            yield from ((f"lora.table.{kind}.{i}.{j}", t) for j, t in enumerate(values) if isinstance(t, torch.Tensor))


def owners(runner):
    """The objects that hold the adapters of a step's rows for LoRA's kernels, by name, for each part of a model that has adapters."""
    for part, wrapper in wrappers(runner).items():
        for kind, owner in {"": wrapper, ".tokens": wrapper.token_mapping_meta, ".prompts": wrapper.prompt_mapping_meta}.items():
            yield f"lora.{part}{kind}", owner


def select(runner, batch):
    """Sets the kernels' inputs for a batch whose requests use, in turn, as many adapters as its descriptor has. The adapters need not be loaded."""
    if not wrappers(runner):
        return
    tokens, requests = batch.num_tokens, min(batch.num_tokens, runner.max_num_reqs)
    # mutant: rows of each request
    scheduled = [tokens // requests + (i >= requests - tokens % requests) for i in range(requests)]
    with made_up(runner), runner.maybe_select_dummy_loras(runner.lora_config, np.array(scheduled, dtype=np.int32), num_active_loras=batch.num_active_loras):
        pass


@contextlib.contextmanager
def made_up(runner):
    """Meanwhile vLLM takes the adapters 1, 2, 3 … for loaded, in the slots 0, 1, 2 …. It changes no weights: loading an adapter would overwrite a slot."""
    if not wrappers(runner):
        yield
        return
    loader, manager = runner.lora_manager, runner.lora_manager._adapter_manager

    def told(_, mapping):
        manager._set_adapter_mapping(mapping)

    held, manager.lora_index_to_id = manager.lora_index_to_id, list(range(1, len(manager.lora_index_to_id) + 1))
    # mutant: adapters that are not loaded for a replay
    loader.set_active_adapters = told
    try:
        yield
    finally:
        del loader.set_active_adapters
        # mutant: adapters that were loaded before a replay
        manager.lora_index_to_id, manager._last_mapping = held, None  # the next step tells its own
