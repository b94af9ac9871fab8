#!/usr/bin/env python3
"""Compares logits and greedy tokens with transformers on the CPU.

In:  a checkpoint directory and commands that print {"tokens": [...], "logits": [[...], ...]} as JSON for
     `-model DIR -tokens 1,2,3` (../oracle/dump is one).  Out: one line a comparison.
Fails (exit 1) where a logit differs by more than the tolerance, relative to the largest magnitude, or where the most
likely tokens differ although their logits are further apart than that.
"""
import argparse
import json
import shlex
import subprocess
import sys

import torch
from transformers import AutoTokenizer, LlamaForCausalLM

PROMPTS = ("In the beginning", "And the king said unto him, What is thy name?", "The LORD is my shepherd; I shall not want. " * 4)


def compare(name: str, got: torch.Tensor, want: torch.Tensor, tolerance: float) -> bool:
    if got.shape != want.shape:
        print(f"check-hf: FAIL {name}: shape {tuple(got.shape)}, want {tuple(want.shape)}")
        return False
    difference = ((got - want).abs().max() / want.abs().max()).item()
    best = want.max(-1).values
    chosen = want.gather(-1, got.argmax(-1, keepdim=True)).squeeze(-1)
    close = ((best - chosen) <= 2 * tolerance * want.abs().max()).all().item()
    good = difference <= tolerance and close
    print(f"check-hf: {'ok' if good else 'FAIL'} {name}: largest difference {difference:.1e} of the largest logit, allowed {tolerance:.0e}")
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("commands", nargs="+", help="each as NAME:TOLERANCE:COMMAND LINE")
    args = parser.parse_args()
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    model = LlamaForCausalLM.from_pretrained(args.model, dtype=torch.float64)
    good = True
    for prompt in PROMPTS:
        tokens = tokenizer.encode(prompt, add_special_tokens=False)
        with torch.no_grad():
            want = model(torch.tensor([tokens])).logits[0].double()
        for entry in args.commands:
            name, tolerance, command = entry.split(":", 2)
            line = [*shlex.split(command), "-model", args.model, "-tokens", ",".join(map(str, tokens))]
            out = json.loads(subprocess.run(line, check=True, capture_output=True, text=True).stdout)
            if out["tokens"] != tokens:
                print(f"check-hf: FAIL {name}: answered for tokens {out['tokens']}")
                good = False
                continue
            got = torch.tensor(out["logits"], dtype=torch.float64)
            good = compare(f"{name}, {len(tokens)} tokens", got, want, float(tolerance)) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
