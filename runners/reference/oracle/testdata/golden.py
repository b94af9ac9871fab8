#!/usr/bin/env python3
"""Prints golden.json: transformers' logits and greedy tokens for the small checkpoint, and for its weights rounded to F16."""
import json
import pathlib
import sys

import torch
from transformers import AutoTokenizer, LlamaForCausalLM

tiny = pathlib.Path(__file__).resolve().parents[2] / "models" / "tiny"
out = []
for name, dtype, prompt in (("tiny", torch.float64, "In the beginning God created"), ("tiny-f16", torch.float16, "And it came to pass, when the king of Israel " * 4)):
    tokens = AutoTokenizer.from_pretrained(tiny).encode(prompt, add_special_tokens=False)
    model = LlamaForCausalLM.from_pretrained(tiny, dtype=dtype).double()
    ids = torch.tensor([tokens])
    with torch.no_grad():
        last = model(ids).logits[0, -1].double().tolist()
    reply = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=12, do_sample=False, eos_token_id=None, pad_token_id=0)
    out.append({"model": name, "tokens": tokens, "last": [round(v, 7) for v in last], "next": reply[0, len(tokens) :].tolist()})
json.dump(out, sys.stdout, separators=(",", ":"))
print()
