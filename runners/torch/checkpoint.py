"""Writes a checkpoint folder of a preset's shape, which tests and measurements load in place of a published model.

In: a preset and how much of it. Out: a folder with config.json, tokenizer.json and, unless --no-weights, random weights
as sharded safetensors files with their index. The tokenizer is a byte-level BPE with as many tokens as the configuration
says, whose merges are made up: it takes as long to load as a trained one and splits text no better than bytes.
"""

import argparse
import itertools
import json
import os

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from model import Model, configuration, presets
from weights import Random


def write_tokenizer(path, size):
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    pairs = ((a, b) for b in letters for a in letters)
    triples = ((a + b, c) for c in letters for b in letters for a in letters)
    merges = list(itertools.islice(itertools.chain(pairs, triples), max(0, size - len(letters))))
    tokens = letters + [a + b for a, b in merges]
    t = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(tokens[:size])}, merges=merges))
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    t.save(path)


def write_weights(folder, config, dtype, shards, seed):
    model = Model(config, dtype, 1, torch.device("meta"))
    source = Random(seed, dtype)
    named = [(name, p) for name, p in model.weights() if name not in model.constants]
    per, weight_map = -(-len(named) // shards), {}
    for i in range(shards):
        part = named[i * per : (i + 1) * per]
        file = f"model-{i + 1:05}-of-{shards:05}.safetensors" if shards > 1 else "model.safetensors"
        save_file({n: torch.cat(list(source.pieces(n, p.shape))).view(p.shape) for n, p in part}, os.path.join(folder, file))
        weight_map |= {n: file for n, _ in part}
    if shards > 1:
        size = sum(p.nbytes for _, p in named)
        with open(os.path.join(folder, "model.safetensors.index.json"), "w", encoding="utf-8") as f:
            json.dump({"metadata": {"total_size": size}, "weight_map": weight_map}, f)


def write(folder, preset, layers=None, vocabulary=None, dtype=torch.bfloat16, shards=1, seed=0, weights=True):
    os.makedirs(folder, exist_ok=True)
    config = configuration(preset, layers=layers, vocabulary=vocabulary)
    config.to_json_file(os.path.join(folder, "config.json"), use_diff=False)
    write_tokenizer(os.path.join(folder, "tokenizer.json"), config.vocab_size)
    if weights:
        write_weights(folder, config, dtype, shards, seed)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("folder")
    p.add_argument("--preset", default="tiny", choices=presets())
    p.add_argument("--layers", type=int)
    p.add_argument("--vocabulary", type=int)
    p.add_argument("--shards", type=int, default=1)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--no-weights", action="store_true", help="config.json and tokenizer.json only: the engine then makes up weights")
    a = p.parse_args()
    write(a.folder, a.preset, a.layers, a.vocabulary, shards=a.shards, seed=a.seed, weights=not a.no_weights)


if __name__ == "__main__":
    main()
