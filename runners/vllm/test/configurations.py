"""A configuration of two layers for each architecture that vLLM's registry generates text with, and the plug-in's verdict on it.

In: a folder, perhaps names of architectures. Out: NAME/config.json in the folder for each that has a configuration class; one JSON object: by architecture, "takes part", the
reason for a native start, or why vLLM makes no engine's configuration of it. Fails: an error of one architecture does not affect the others.

No model is made and no device is used: this is the cheap half of architectures.py.
"""

import argparse
import json
import os
import sys

import torch
import vllm
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from vllm.engine.arg_utils import EngineArgs
from vllm.model_executor.models import registry
from vllm.transformers_utils import config as vllm_config

import engine

# By the canonical name of an attribute; classes have names of their own for some (attribute_map).
SMALL = {
    "hidden_size": 256, "intermediate_size": 512, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64, "vocab_size": 1024,
    "num_experts": 4, "num_local_experts": 4, "n_routed_experts": 4, "moe_num_experts": 4, "num_experts_per_tok": 2, "top_k_experts": 2, "moe_k": 2,
    "moe_topk": 2, "moe_intermediate_size": 128, "shared_expert_intermediate_size": 128, "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1,
    "num_kv_heads": 2, "ffn_hidden_size": 512, "ffn_dim": 512, "d_model": 256, "word_embed_proj_dim": 256, "n_heads": 4, "n_layers": 2, "rotary_dim": 64,
    "global_head_dim": 64, "hidden_size_per_layer_input": 64, "vocab_size_per_layer_input": 1024, "swa_head_dim": 64, "swa_num_attention_heads": 4,
    "swa_num_key_value_heads": 2, "embedding_size": 256,
}  # fmt: skip
LAYERS = "num_hidden_layers"
COUNT = 2
TAKES_PART = "takes part"


def architectures():
    """The architectures that generate text: (module, class) by name."""
    return {**registry._TEXT_GENERATION_MODELS, **registry._MULTIMODAL_MODELS}


def types():
    """Model types by architecture, of transformers and of vLLM's own configuration classes. If vLLM runs an architecture by another's class, it has that one's type."""
    found = {}
    for names in (
        modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES,
        modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
        modeling_auto.MODEL_FOR_PRETRAINING_MAPPING_NAMES,
    ):
        for kind, classes in names.items():
            for name in classes if isinstance(classes, (tuple, list)) else [classes]:
                found.setdefault(name, kind)
    by_class = {}
    for name, place in architectures().items():
        if name in found:
            by_class.setdefault(tuple(place), found[name])
    return {name: found.get(name) or by_class.get(tuple(place)) for name, place in architectures().items()}


def configuration_class(kind):
    own = vllm_config._CONFIG_REGISTRY
    return own[kind] if kind in own else CONFIG_MAPPING[kind]


def shrunk(values, names):
    """The values of a configuration with two layers of small matrices. names: the class's own names, by canonical name."""
    small = {names.get(name, name): value for name, value in SMALL.items()}
    layers = names.get(LAYERS, LAYERS)
    depth = values.get(layers)
    result = {}
    for name, value in values.items():
        if isinstance(value, dict) and (LAYERS in value or "model_type" in value):
            value = shrunk(value, names_of(value.get("model_type")))
        elif name == layers:
            value = COUNT
        elif isinstance(value, dict) and value and all(str(key).isdecimal() for key in value):
            value = {key: told for key, told in value.items() if int(key) < COUNT}
        elif isinstance(value, list) and len(value) == depth and depth != COUNT:
            value = value[:COUNT]  # one entry for each layer
        elif name in small and isinstance(value, int):
            value = small[name]
        result[name] = value
    return result


def names_of(kind):
    try:
        return getattr(configuration_class(kind), "attribute_map", None) or {}
    except Exception:
        return {}


def configuration(name, kind):
    made = configuration_class(kind)()
    values = shrunk(made.to_dict(), names_of(kind))
    return {**values, "architectures": [name], "model_type": kind, "torch_dtype": "bfloat16", "dtype": "bfloat16"}


def verdict(folder):
    from medusa_vllm import gate

    args = argparse.Namespace(model=folder, backend="FLASH_ATTN", graphs="FULL_DECODE_ONLY", set=[])
    config = EngineArgs(**engine.settings(args)).create_engine_config()
    return gate.config_reason(config) or TAKES_PART


def one(folder, name, kind):
    if not kind:
        return "vLLM: no configuration class of this architecture is installed"
    at = os.path.join(folder, name)
    try:
        os.makedirs(at, exist_ok=True)
        with open(os.path.join(at, "config.json"), "w", encoding="utf-8") as f:
            json.dump(configuration(name, kind), f, indent=1, default=str)
        return verdict(at)
    except Exception as e:
        return f"vLLM: {cause(e)}"


def cause(e):
    """An exception on one line. Validators name the validated object first, and then the cause."""
    lines = [line.strip() for line in str(e).splitlines() if line.strip()]
    told = next((line for line in lines[1:] if "rror" in line and "further information" not in line), " ".join(lines[:3]))
    return f"{type(e).__name__}: {told.split(' [type=')[0]}"[:200]


def apart(step):
    """The result of a step in a process of its own, because vLLM keeps state."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        with os.fdopen(write, "w", encoding="utf-8") as f:
            f.write(step())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, encoding="utf-8") as f:
        said = f.read()
    status = os.waitpid(child, 0)[1]
    return said or f"vLLM: the process ended with status {status}"


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("folder")
    p.add_argument("names", nargs="*")
    args = p.parse_args()
    sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    # vLLM looks at a model's class in a process of its own, which costs seconds. Each architecture has one here already.
    registry._run_in_subprocess = lambda inspect: inspect()
    kinds = types()
    versions = {"device": apart(lambda: torch.cuda.get_device_name(0)), "vllm": vllm.__version__, "torch": torch.__version__}
    print(json.dumps({"versions": versions, "verdicts": {name: apart(lambda n=name: one(args.folder, n, kinds[n])) for name in args.names or kinds}}))


if __name__ == "__main__":
    main()
