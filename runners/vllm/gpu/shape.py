"""Writes the config.json of a shape, for dummy weights.

In: the shape's name, a folder. Out: FOLDER/config.json. Fails: if the shape is not known.
"""

import json
import os
import sys

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


def main():
    name, folder = sys.argv[1:]
    if name not in SHAPES:
        sys.exit(f"shape {name}: none of {', '.join(SHAPES)}")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
        json.dump(COMMON | SHAPES[name], f, indent=2)


if __name__ == "__main__":
    main()
