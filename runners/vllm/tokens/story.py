"""Trains a small Llama to tell stories, and writes down the stories that transformers generates with it on the CPU.

    story.py FOLDER             makes FOLDER
    story.py FOLDER --tell FILE prints the texts of a list of tokens for each prompt of FOLDER

In: story.txt, whose parts stories are made of. Out: FOLDER with config.json, weights, a tokenizer and expected.json as checkpoint.py has it. Fails: the loss on stories
that the model has not seen is above BOUND; or it tells a story that it was trained on.
"""

import argparse
import json
import os
import pathlib
import random
import re
import sys

import torch
from checkpoint import GROUPED, generate
from transformers import LlamaConfig, PreTrainedTokenizerFast

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "reference" / "train"))

from train import END, encode, train, train_tokenizer  # noqa: E402

SEED, WORDS, STORIES, STEPS, BATCH, LENGTH, RATE = 1, 1024, 6000, 1000, 16, 128, 3e-3
# In nats per token. To choose one of the lines of each part takes about 20 nats for a story of some 83 tokens, or 0.24.
BOUND = 0.5
PROMPTS = "One morning Greta the otter", "Once there was a crow called", "Late in autumn", "In the year of the great snow"
COUNT = 100


def read(path):
    """The lines of each part."""
    parts, name = {}, None
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            name = line.strip("[]")
            parts[name] = []
        elif line and not line.startswith("#"):
            parts[name].append(line)
    return parts


def story(parts, rng):
    order = list(parts)
    chosen = {name: rng.choice(lines) for name, lines in parts.items()}
    text = " ".join(chosen[name] for name in order[order.index("opening") :])
    return re.sub(r"{(\w+)}", lambda m: chosen[m[1]], text)


def stories(count, rng):
    parts = read(HERE / "story.txt")
    return [story(parts, rng) for _ in range(count)]


def make(folder):
    torch.manual_seed(SEED)
    told = stories(STORIES, random.Random(SEED))
    tokenizer = train_tokenizer("\n".join(told), WORDS)
    config = LlamaConfig(**GROUPED | {"vocab_size": WORDS, "bos_token_id": 0, "eos_token_id": 0})
    model, loss = train(config, encode(tokenizer, told), STEPS, BATCH, LENGTH, RATE)
    if loss > BOUND:
        raise SystemExit(f"make model {folder}: held-out loss {loss:.3f}, at most {BOUND} is wanted")
    model.eval().save_pretrained(folder)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END).save_pretrained(folder)
    cases = [{"prompt": tokenizer.encode(prompt).ids, "count": COUNT} for prompt in PROMPTS]
    with torch.inference_mode():
        for case in cases:
            case["tokens"], case["margins"] = generate(model, case["prompt"], COUNT)
            text = tokenizer.decode(until_end(tokenizer, case["prompt"] + case["tokens"]))
            if text.strip() in told:
                raise SystemExit(f"make model {folder}: it tells a story that it was trained on: {text}")
    with open(os.path.join(folder, "expected.json"), "w", encoding="utf-8") as f:
        json.dump(cases, f)
    print(f"story: held-out loss {loss:.3f} nats a token, at most {BOUND} is wanted; {STORIES} stories, {sum(p.numel() for p in model.parameters())} parameters")


def until_end(tokenizer, tokens):
    end = tokenizer.token_to_id(END)
    return tokens[: tokens.index(end)] if end in tokens else tokens


def tell(folder, path):
    """After a story's end the model begins another one, which COUNT cuts off."""
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder).backend_tokenizer
    with open(os.path.join(folder, "expected.json"), encoding="utf-8") as f, open(path, encoding="utf-8") as g:
        for case, answer in zip(json.load(f), json.load(g), strict=True):
            print(tokenizer.decode(until_end(tokenizer, case["prompt"] + answer)).strip())


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("folder")
    p.add_argument("--tell", help="file with a list of tokens for each prompt")
    a = p.parse_args()
    if a.tell:
        tell(a.folder, a.tell)
    else:
        make(a.folder)


if __name__ == "__main__":
    main()
