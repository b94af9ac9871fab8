"""Writes adapters with random weights, and what transformers generates with their weights added to the model's.

In: a model of checkpoint.py, its folder, its requests. Out: FOLDER/adapters/NAME in the form of PEFT, FOLDER/expected-lora.json, in which requests take turns
with an adapter, another one, and none. Fails: if an adapter changes no token.
"""

import json
import os

import torch
from extras import ADAPTERS, LORA
from safetensors.torch import save_file

RANK, SCALE = 4, 2
TARGETS = "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"


def adapted(model):
    return {name: module for name, module in model.named_modules() if name.rpartition(".")[2] in TARGETS}


def make(model, folder, name):
    """Returns what is added to each weight."""
    tensors, added = {}, {}
    for path, module in adapted(model).items():
        a = torch.empty(RANK, module.in_features).normal_(0, 0.1).to(module.weight.dtype)
        b = torch.empty(module.out_features, RANK).normal_(0, 0.1).to(module.weight.dtype)
        tensors |= {f"base_model.model.{path}.lora_A.weight": a, f"base_model.model.{path}.lora_B.weight": b}
        added[path] = SCALE * b.float() @ a.float()
    os.makedirs(os.path.join(folder, "adapters", name), exist_ok=True)
    save_file(tensors, os.path.join(folder, "adapters", name, "adapter_model.safetensors"))
    config = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": RANK, "lora_alpha": SCALE * RANK, "target_modules": list(TARGETS), "bias": "none"}
    with open(os.path.join(folder, "adapters", name, "adapter_config.json"), "w", encoding="utf-8") as f:
        json.dump(config | {"base_model_name_or_path": folder}, f)
    return added


def write(model, folder, cases, generate):
    """model: in its own type. generate: that of checkpoint.py."""
    added = {name: make(model, folder, name) for name in ADAPTERS}
    model, chosen = model.float(), [*ADAPTERS, None]
    answers = [dict(case, adapter=chosen[i % len(chosen)]) for i, case in enumerate(cases)]
    for name in ADAPTERS:
        for path, more in added[name].items():
            model.get_submodule(path).weight.add_(more)
        for case, base in zip(answers, cases):
            if case["adapter"] == name:
                case["tokens"], case["margins"] = generate(model, case["prompt"], case["count"])
                if case["tokens"] == base["tokens"]:
                    raise SystemExit(f"make adapter {name}: it changes no token of a request")
        for path, more in added[name].items():
            model.get_submodule(path).weight.sub_(more)
    with open(os.path.join(folder, f"expected-{LORA}.json"), "w", encoding="utf-8") as f:
        json.dump(answers, f)
