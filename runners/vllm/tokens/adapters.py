"""Writes adapters with random weights, and the tokens of transformers with these weights added to the model's.

In: a model of checkpoint.py, its folder, its requests. Out: FOLDER/adapters/NAME in the form of PEFT, FOLDER/expected-lora.json, in which requests take turns
with an adapter, another one, and none. Fails: if an adapter changes no token.
"""

import contextlib
import json
import os

import torch
from extras import ADAPTERS, LORA
from safetensors.torch import load_file, save_file

RANK, SCALE = 4, 2
PREFIX, FILE = "base_model.model.", "adapter_model.safetensors"
TARGETS = "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"


def adapted(model):
    return {name: module for name, module in model.named_modules() if name.rpartition(".")[2] in TARGETS}


def place(folder, name):
    return os.path.join(folder, "adapters", name)


def make(model, folder, name):
    tensors = {}
    for path, module in adapted(model).items():
        shapes = {"A": (RANK, module.in_features), "B": (module.out_features, RANK)}
        tensors |= {f"{PREFIX}{path}.lora_{part}.weight": torch.empty(shape).normal_(0, 0.1).to(module.weight.dtype) for part, shape in shapes.items()}
    os.makedirs(place(folder, name), exist_ok=True)
    save_file(tensors, os.path.join(place(folder, name), FILE))
    config = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": RANK, "lora_alpha": SCALE * RANK, "target_modules": list(TARGETS), "bias": "none"}
    with open(os.path.join(place(folder, name), "adapter_config.json"), "w", encoding="utf-8") as f:
        json.dump(config | {"base_model_name_or_path": folder}, f)


@contextlib.contextmanager
def applied(model, folder, name):
    """Inside this context, a model in single precision has the adapter. name: None for no adapter."""
    kept = {path: module.weight.clone() for path, module in adapted(model).items()} if name else {}
    tensors = load_file(os.path.join(place(folder, name), FILE)) if name else {}
    for path in kept:
        a, b = (tensors[f"{PREFIX}{path}.lora_{part}.weight"].float() for part in "AB")
        model.get_submodule(path).weight.add_(SCALE * b @ a)
    yield
    for path, weight in kept.items():
        model.get_submodule(path).weight.copy_(weight)


def write(model, folder, cases, generate):
    """model: in its own type. generate: that of checkpoint.py."""
    for name in ADAPTERS:
        make(model, folder, name)
    model, chosen = model.float(), [*ADAPTERS, None]
    answers = [dict(case, adapter=chosen[i % len(chosen)]) for i, case in enumerate(cases)]
    for name in ADAPTERS:
        with applied(model, folder, name):
            for case, base in zip(answers, cases):
                if case["adapter"] != name:
                    continue
                case["tokens"], case["margins"] = generate(model, case["prompt"], case["count"])
                if case["tokens"] == base["tokens"]:
                    raise SystemExit(f"make adapter {name}: it changes no token of a request")
    with open(os.path.join(folder, f"expected-{LORA}.json"), "w", encoding="utf-8") as f:
        json.dump(answers, f)
