"""Writes a model of a shape, with random weights. With vLLM's dummy weights, which are much smaller, the tokens of nearly all requests alternated between two on an H200.

In: the shape's name, a folder. Out: FOLDER/config.json, and a file of weights for each layer. Fails: if the shape is not known.
"""

import json
import os
import sys

import torch
from safetensors.torch import save_file

QWEN = {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "vocab_size": 151936, "rope_theta": 1000000, "rms_norm_eps": 1e-06}
SHAPES = {
    "0.6b": QWEN | {"hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28, "num_attention_heads": 16, "tie_word_embeddings": True},
    "1.7b": QWEN | {"hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 28, "num_attention_heads": 16, "tie_word_embeddings": True},
    "8b": QWEN | {"hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36, "num_attention_heads": 32, "tie_word_embeddings": False},
    "tiny": QWEN | {"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2, "num_attention_heads": 4, "tie_word_embeddings": True,
                    "vocab_size": 1024, "num_key_value_heads": 2, "head_dim": 64},
}  # fmt: skip
COMMON = {
    "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 40960, "hidden_act": "silu", "bos_token_id": 1,
    "eos_token_id": 2, "torch_dtype": "bfloat16",
}  # fmt: skip


class Weights:
    """Parts of the same normal numbers: making billions of them would take minutes."""

    def __init__(self, folder):
        self.folder, self.of, self.at = folder, torch.Generator().manual_seed(1), 0
        self.numbers = (0.05 * torch.randn((1 << 24) + 17, generator=self.of)).to(torch.bfloat16)

    def __call__(self, *shape):
        count = torch.Size(shape).numel()
        self.at = (self.at + 7919) % len(self.numbers)
        return self.numbers.roll(-self.at).repeat(count // len(self.numbers) + 1)[:count].reshape(shape)

    def save(self, name, tensors):
        save_file({name: t.contiguous().clone() for name, t in tensors.items()}, os.path.join(self.folder, f"{name}.safetensors"), metadata={"format": "pt"})


def layer(weights, config):
    hidden, inner, width = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    queries, keys = (width * config[f"num_{name}_heads"] for name in ("attention", "key_value"))
    shapes = {"self_attn.q": (queries, hidden), "self_attn.k": (keys, hidden), "self_attn.v": (keys, hidden), "self_attn.o": (hidden, queries)}
    shapes |= {"mlp.gate": (inner, hidden), "mlp.up": (inner, hidden), "mlp.down": (hidden, inner)}
    norms = {"self_attn.q_norm": width, "self_attn.k_norm": width, "input_layernorm": hidden, "post_attention_layernorm": hidden}
    projections = {f"{name}_proj.weight": weights(*shape) for name, shape in shapes.items()}
    return projections | {f"{name}.weight": torch.ones(n, dtype=torch.bfloat16) for name, n in norms.items()}


def main():
    name, folder = sys.argv[1:]
    if name not in SHAPES:
        sys.exit(f"shape {name}: none of {', '.join(SHAPES)}")
    os.makedirs(folder, exist_ok=True)
    config = COMMON | SHAPES[name]
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
        json.dump(config, f, indent=2)
    weights, vocabulary = Weights(folder), (config["vocab_size"], config["hidden_size"])
    ends = {"model.embed_tokens.weight": weights(*vocabulary), "model.norm.weight": torch.ones(config["hidden_size"], dtype=torch.bfloat16)}
    weights.save("ends", ends if config["tie_word_embeddings"] else ends | {"lm_head.weight": weights(*vocabulary)})
    for i in range(config["num_hidden_layers"]):
        weights.save(f"layer-{i:02}", {f"model.layers.{i}.{name}": t for name, t in layer(weights, config).items()})


if __name__ == "__main__":
    main()
