#!/usr/bin/env python3
"""Compares the oracle and the engine with transformers on the CPU: token ids, logits, and the choices of greedy decoding.

In:  a checkpoint directory, the program ../oracle/dump and the engine.  Out: one line a comparison.
Fails (exit 1) if token ids differ, if a logit differs by more than the tolerance (relative to the largest magnitude),
or if the most likely tokens differ although their logits are further apart than the tolerance explains.
"""
import argparse
import json
import pathlib
import subprocess
import sys

import torch
from transformers import AutoTokenizer, LlamaForCausalLM

PROMPTS = ("In the beginning", "And the king said unto him, What is thy name?", "The LORD is my shepherd; I shall not want. " * 4, "Zwölf Boxkämpfer,\t 12:34  !\n")
# transformers computes norms, angles and softmax in float32 even in a float64 model.
ORACLE_TOLERANCE = 1e-6
ENGINE_TOLERANCE = {"float32": 1e-4, "float16": 1e-2}
STEPS = 8


class Check:
    def __init__(self, directory: str):
        self.tokenizer = AutoTokenizer.from_pretrained(directory)
        self.model = LlamaForCausalLM.from_pretrained(directory, dtype=torch.float64)
        self.good = True

    def encode(self, prompt: str) -> list[int]:
        return self.tokenizer.encode(prompt, add_special_tokens=False)

    def report(self, good: bool, text: str) -> None:
        self.good = self.good and good
        print(f"check-hf: {'ok' if good else 'FAIL'} {text}", flush=True)

    def compare(self, name: str, tokens: list[int], logits: list[list[float]], tolerance: float) -> None:
        """logits are those behind the last len(logits) of tokens."""
        got = torch.tensor(logits, dtype=torch.float64)
        with torch.no_grad():
            want = self.model(torch.tensor([tokens])).logits[0, -len(logits) :].double()
        largest = want.abs().max()
        difference = ((got - want).abs().max() / largest).item()
        chosen = want.gather(-1, got.argmax(-1, keepdim=True)).squeeze(-1)
        close = bool(((want.max(-1).values - chosen) <= 2 * tolerance * largest).all())
        self.report(
            difference <= tolerance and close,
            f"{name}, {len(tokens)} tokens: largest difference {difference:.1e} of the largest logit, allowed {tolerance:.0e}",
        )


def call(*command: str) -> dict:
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("oracle")
    parser.add_argument("engine")
    args = parser.parse_args()
    check = Check(str(args.model))
    for prompt in PROMPTS:
        tokens = check.encode(prompt)
        out = call(args.oracle, "-model", str(args.model), "-tokens", ",".join(map(str, tokens)))
        check.compare("oracle", out["tokens"], out["logits"], ORACLE_TOLERANCE)

    tolerance = ENGINE_TOLERANCE[json.loads((args.model / "config.json").read_text())["torch_dtype"]]
    flags = [flag for prompt in PROMPTS for flag in ("--prompt", prompt)]
    out = call(args.engine, "logits", "--model", str(args.model), "--batch-sizes", "1,2,4,8", "--steps", str(STEPS), *flags)
    for prompt, result in zip(PROMPTS, out["prompts"], strict=True):
        check.report(result["input"] == check.encode(prompt), f"engine, token ids of {prompt[:20]!r}")
        check.compare("engine", result["input"] + result["tokens"][: len(result["logits"]) - 1], result["logits"], tolerance)
        following = [row.index(max(row)) for row in result["logits"]]
        check.report(following == result["tokens"], "engine, tokens are the most likely ones")
    return 0 if check.good else 1


if __name__ == "__main__":
    sys.exit(main())
