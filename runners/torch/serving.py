"""The engine's work once it is ready: continue prompts greedily, at every batch size, and time decode steps.

In: an engine that is ready. Out: tokens, digests of the logits of every step, seconds of decode steps. Prefill runs eagerly;
decode replays a graph if there is one. Fails: never on its own.
"""

import hashlib
import random
import time

import torch


def prompts(engine, batch):
    """Token ids for each row: the user's prompts in turn, or made from the seed, of different lengths."""
    room = engine.length - engine.args.tokens
    if engine.args.prompt:
        encoded = [engine.tokenizer.encode(text).ids[-room:] for text in engine.args.prompt]
        return [encoded[row % len(encoded)] for row in range(batch)]
    r = random.Random(f"{engine.args.seed}/{batch}")
    vocabulary = engine.model.config.vocab_size
    return [[r.randrange(vocabulary) for _ in range(r.randint(1, max(1, min(16, room))))] for _ in range(batch)]


def continue_prompts(engine, batch, digest):
    """The tokens that follow each prompt. digest takes the logits of each step."""
    model, ids = engine.model, prompts(engine, batch)
    lengths = torch.tensor([len(row) for row in ids])
    padded = torch.zeros((batch, int(lengths.max())), dtype=torch.int64)
    for i, row in enumerate(ids):
        padded[i, : len(row)] = torch.tensor(row)
    model.prefill(padded.to(engine.device), lengths.to(engine.device))
    out = []
    for i in range(engine.args.tokens):
        digest(model.logits[:batch])
        token = model.next[:batch].cpu()
        out.append(token.tolist())
        if i + 1 < engine.args.tokens:
            model.tokens[:batch].copy_(token)
            model.positions[:batch].copy_(lengths + i)
            engine.decode(batch)
    return [list(row) for row in zip(*out)]


def serve(engine):
    """Tokens by batch size, for verification to compare, and the self test."""
    return {batch: continue_prompts(engine, batch, lambda _: None) for batch in engine.batches}


def report(engine):
    """Tokens, and with them one digest a batch size over the logits of all its steps."""
    tokens, digests = {}, {}
    for batch in engine.batches:
        total = hashlib.sha256()
        tokens[batch] = continue_prompts(engine, batch, lambda t: total.update(t.contiguous().view(torch.uint8).cpu().numpy()))
        digests[batch] = total.hexdigest()
    return tokens, digests


def replays(engine, count):
    """Seconds of a decode step at each batch size, one after the other without waiting between them."""
    out = {}
    for batch in engine.batches:
        engine.decode(batch)
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(count):
            engine.decode(batch)
        torch.cuda.synchronize()
        out[batch] = (time.perf_counter() - began) / count
    return out
