"""Requests that steps are issued for, and how many graphs they launch.

In: a worker of vLLM, a batch. Out: launches of graphs, and how many there should be. Fails: with the exception of a step.
"""

import json
import os
import sys

import torch
from held import all_entries, all_steps, broken, graphs_of, pieces, whole_steps
from vllm.config import CUDAGraphMode

PROMPT, STEPS = 5, 3  # PROMPT differs from the tokens of a decode step: vLLM 0.26 takes a prefill of as many tokens for a decode step


class Counted:
    """A graph, and how often graphs were launched."""

    launches = 0

    def __init__(self, graph):
        self.graph = graph

    def __getattr__(self, name):
        return getattr(self.graph, name)

    def replay(self):
        Counted.launches += 1
        self.graph.replay()


def count(runner):
    for graphs in all_steps(runner).values():
        for desc, held in graphs.items():
            if hasattr(held, "cudagraph"):
                held.cudagraph = Counted(held.cudagraph)
            else:
                graphs[desc] = Counted(held)
    for *_, entry in all_entries():
        entry.cudagraph = Counted(entry.cudagraph)
    for entry in broken().values():
        entry.capture.segments[:] = [Counted(step.__self__).replay if hasattr(step, "__self__") else step for step in entry.capture.segments]


def adapter(worker, folder):
    """A request's adapter, which vLLM loads from the folder at the first step that needs it."""
    from safetensors.torch import save_file
    from vllm.lora.request import LoRARequest

    rank, model = 8, worker.model_config.hf_config
    with open(os.path.join(folder, "adapter_config.json"), "w", encoding="utf-8") as f:
        json.dump({"peft_type": "LORA", "r": rank, "lora_alpha": rank, "target_modules": ["o_proj"], "base_model_name_or_path": ""}, f)
    width = model.num_attention_heads * worker.model_config.get_head_size()
    layer = "base_model.model.model.layers.0.self_attn.o_proj."
    weights = {layer + "lora_A.weight": torch.ones(rank, width), layer + "lora_B.weight": torch.ones(model.hidden_size, rank)}
    save_file(weights, os.path.join(folder, "adapter_model.safetensors"))
    return LoRARequest("adapter", 1, folder)


def serve(worker, batch, adapter=None):
    """A prefill and some decode steps of `batch` requests. Returns how many graphs were launched."""
    # Not at the import: vLLM looks for plug-ins in all folders of the path.
    sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    from medusa_vllm import steps

    before = Counted.launches
    names = [f"request-{i}" for i in range(batch)]
    with steps.unconnected(worker):
        steps.run(worker, steps.prefill(worker, names, [PROMPT] * batch, adapter))
        for i in range(STEPS):
            steps.run(worker, steps.decode(worker, names, [PROMPT + i] * batch, 1 + i))
        steps.finish(worker, names)
    torch.cuda.synchronize()
    return Counted.launches - before


def expected(runner, batch):
    """How many graphs such requests take. A decode step takes one, or as many as the model has pieces. A prefill of few tokens takes the
    pieces, or one if graphs of whole steps are for any step."""
    parts, mode = len(pieces()) or max((len(graphs_of(entry)) for entry in broken().values()), default=0), runner.compilation_config.cudagraph_mode
    few = PROMPT * batch <= max(runner.compilation_config.cudagraph_capture_sizes, default=0)
    prefill = 1 if mode is CUDAGraphMode.FULL else parts
    return STEPS * (1 if whole_steps(runner) else parts) + (prefill if few else 0) + drafted(runner, batch, few)


def drafted(runner, batch, few):
    """The graphs of a draft model. Its first forward is like the model's step, and is a graph if that step is one. The other forwards follow each
    step, also prefills. Together they are one graph if attention updates its metadata in the graph."""
    steps, parts = all_steps(runner), len(pieces("eagle_head"))
    if len(steps) == 1:
        return 0
    first = STEPS * (1 if steps["draft prefill "] else parts) + (parts if few else 0)
    others = 1 if getattr(runner.speculator, "supports_decode_metadata_update", False) else runner.speculator.num_speculative_steps - 1
    return first + ((STEPS + 1) * others if any(desc.num_tokens >= batch for desc in steps["draft decode "]) else 0)
