"""Tokens and their times of one vLLM engine, natively or under `medusa restore`.

In: a model, LLM arguments as JSON, batch sizes. Out: one JSON object: for each batch size the time to the first token, the
median time per output token, and the tokens. Fails: with vLLM's exception.
"""

import argparse
import json
import statistics
import time

from vllm import LLM, SamplingParams

PROMPT = 32


def serve(engine, batch, tokens):
    """Greedy decoding of `batch` prompts that differ, each `tokens` long. Times are those of the whole batch."""
    sampling = SamplingParams(max_tokens=tokens, temperature=0, ignore_eos=True, detokenize=False)
    began = time.perf_counter()
    for i in range(batch):
        prompt = [3 + (7 * i + 11 * j) % 997 for j in range(PROMPT)]
        engine.add_request(f"{batch}-{i}", {"prompt_token_ids": prompt}, sampling)
    times, found = [], {}
    while engine.has_unfinished_requests():
        for output in engine.step():
            if output.finished:
                found[output.request_id] = list(output.outputs[0].token_ids)
        times.append(time.perf_counter())
    steps = [b - a for a, b in zip(times[1:], times[2:])]
    return {
        "ttft_ms": 1000 * (times[0] - began),
        "tpot_ms": 1000 * statistics.median(steps),
        "tokens": [found[f"{batch}-{i}"] for i in range(batch)],
    }


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("model")
    p.add_argument("--arguments", type=json.loads, default={}, help="of LLM, as JSON")
    p.add_argument("--batches", default="1:1024,8:256,32:128,128:64", help="batch sizes, each with the tokens of a sequence; empty: only start")
    args = p.parse_args()
    engine = LLM(model=args.model, skip_tokenizer_init=True, **args.arguments).llm_engine
    batches = [tuple(map(int, pair.split(":"))) for pair in args.batches.split(",") if pair]
    if batches:
        serve(engine, 1, 8)
    print(json.dumps({str(batch): serve(engine, batch, tokens) for batch, tokens in batches}))


if __name__ == "__main__":
    main()
