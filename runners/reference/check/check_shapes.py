#!/usr/bin/env python3
"""Compares the engine with transformers on models of odd sizes with random weights, which transformers itself saves.

In:  the program ../oracle/dump and the engine.  Out: one line a model.
Fails (exit 1) if a logit differs by more than the tolerance, relative to the largest magnitude.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import torch
from transformers import LlamaConfig, LlamaForCausalLM

# hidden, intermediate, heads, KV heads, head size, vocabulary, layers, element type, tied
SHAPES = (
    (64, 172, 8, 4, 8, 512, 2, "bfloat16", False),
    (50, 67, 5, 1, 10, 101, 2, "float32", True),
    (33, 1, 3, 3, 6, 77, 1, "float16", False),
    (6, 90, 2, 1, 136, 5, 1, "bfloat16", True),
)
TOLERANCE = {"float32": 1e-4, "float16": 1e-2, "bfloat16": 2e-2}
PROMPTS = ((1, 2, 0), (4, 4, 3, 1, 2), (0,))


def main() -> int:
    oracle, engine = sys.argv[1:3]
    good = True
    for hidden, intermediate, heads, kv_heads, head, vocabulary, layers, dtype, tied in SHAPES:
        torch.manual_seed(7)
        config = LlamaConfig(
            hidden_size=hidden, intermediate_size=intermediate, num_attention_heads=heads, num_key_value_heads=kv_heads, head_dim=head,
            vocab_size=vocabulary, num_hidden_layers=layers, tie_word_embeddings=tied, max_position_embeddings=64, bos_token_id=1,
            eos_token_id=2, pad_token_id=0, initializer_range=hidden**-0.5, dtype=dtype,
        )
        with tempfile.TemporaryDirectory() as folder:
            LlamaForCausalLM(config).to(getattr(torch, dtype)).save_pretrained(folder)
            model = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float64)
            flags = [flag for p in PROMPTS for flag in ("--prompt", " ".join(map(str, p)))]
            command = [engine, "logits", "--model", folder, "--batch-sizes", "1,4", "--kv-cache-bytes", "4000000", "--steps", "3", *flags]
            out = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
            worst, exact = 0.0, 0.0
            for result in out["prompts"]:
                tokens = result["input"] + result["tokens"][:-1]
                with torch.no_grad():
                    want = model(torch.tensor([tokens])).logits[0].double()
                largest = want.abs().max()
                text = ",".join(map(str, tokens))
                dump = subprocess.run([oracle, "-model", folder, "-tokens", text], check=True, stdout=subprocess.PIPE, text=True).stdout
                exact = max(exact, ((torch.tensor(json.loads(dump)["logits"]).double() - want).abs().max() / largest).item())
                got = torch.tensor(result["logits"]).double()
                worst = max(worst, ((got - want[-len(got):]).abs().max() / largest).item())
            ok = worst <= TOLERANCE[dtype] and exact <= 1e-6
            good = good and ok
            print(f"check-hf: {'ok' if ok else 'FAIL'} {dtype}, hidden {hidden}: engine {worst:.1e}, oracle {exact:.1e} of the largest logit", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
