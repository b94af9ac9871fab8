"""Cases of make test-tokens with more than decoding: drafts by n-grams or by a draft model, adapters, sleep, several ranks.

In: the case's word, a folder of checkpoint.py, an engine. Out: arguments of LLM, tokens of the folder's requests, and the tokens that a draft model has proposed.
Fails: as vLLM does; RuntimeError if no draft was proposed, or if memory stays in use asleep.
"""

import contextlib
import functools
import json
import os
import sys
import tempfile

NGRAM, EAGLE, LORA, SLEEP, OFFLOAD = "ngram", "eagle", "lora", "sleep", "offload"
RANKS = {"ranks2": 2, "ranks4": 4}  # tensor parallel
ALL = (NGRAM, EAGLE, LORA, SLEEP, OFFLOAD, *RANKS)
DRAFTS = 3  # tokens that a draft proposes
ADAPTERS = "one", "two"
ALONE = 6  # requests that are answered one after another: only a step in which each request has all drafts has a graph
HIGHEST_RANK = 8  # of an adapter
# Of sleep: after each, some requests are answered, with as many tokens.
CYCLES, AFTER, SHORT = 20, 8, 12
LEVELS = 1, 2
HOST, BLOCK = 64 << 20, 16  # bytes of the host's memory for keys and values; tokens of a block


def speculates(feature):
    return feature in (NGRAM, EAGLE)


def options(feature, folder):
    """Arguments of LLM. A step has so many tokens for a request."""
    more = {
        NGRAM: {"speculative_config": {"method": "ngram", "num_speculative_tokens": DRAFTS, "prompt_lookup_max": 3, "prompt_lookup_min": 1}},
        EAGLE: {"speculative_config": {"method": "eagle", "model": os.path.join(folder, "draft"), "num_speculative_tokens": DRAFTS}},
        LORA: {"enable_lora": True, "max_loras": len(ADAPTERS), "max_lora_rank": HIGHEST_RANK},
        SLEEP: {"enable_sleep_mode": True},
        # vLLM's other implementations of all-reduce are machine code.
        **{word: {"tensor_parallel_size": count, "disable_custom_all_reduce": True} for word, count in RANKS.items()},
        OFFLOAD: {"kv_transfer_config": {"kv_connector": "OffloadingConnector", "kv_role": "kv_both", "kv_connector_extra_config": {"cpu_bytes_to_use": HOST}}},
    }
    return more.get(feature, {}), 1 + DRAFTS if speculates(feature) else 1


class OneWarp:
    """A kernel of Triton whose blocks are one warp."""

    def __init__(self, kernel):
        self.kernel = kernel

    def __getitem__(self, grid):
        return functools.partial(self.kernel[grid], num_warps=1)


def install(feature):
    """One kernel of the rejection sampler loads a count that it then stores, with no barrier between them: a warp that comes late finds the new one. A GPU's warps
    load at nearly the same time. Those of the simulated GPU run one after another."""
    if speculates(feature):
        from vllm.v1.worker.gpu.spec_decode import rejection_sampler_utils as utils

        utils._insert_resampled_kernel = OneWarp(utils._insert_resampled_kernel)


def requests(feature):
    """The file with the requests, and transformers' answers."""
    return f"expected-{LORA}.json" if feature == LORA else "expected.json"


def rounds(feature, folder):
    """The requests, and those that come after each sleep, or once the KV cache is empty again."""
    with open(os.path.join(folder, requests(feature)), encoding="utf-8") as f:
        cases = json.load(f)
    short = [case | {"count": SHORT, "tokens": case["tokens"][:SHORT], "margins": case["margins"][:SHORT]} for case in cases[:AFTER]]
    return cases, {SLEEP: short * CYCLES, OFFLOAD: cases}.get(feature, [])


def expected(feature, folder):
    """The requests of all rounds, with transformers' answers."""
    cases, again = rounds(feature, folder)
    return cases + again


def generate(llm, cases, folder):
    """vLLM's answers, with all that it tells about them."""
    from vllm import SamplingParams
    from vllm.lora.request import LoRARequest

    settings = [SamplingParams(temperature=0, max_tokens=case["count"], ignore_eos=True, detokenize=False) for case in cases]
    # The engine has none of these at its start.
    adapters = {name: LoRARequest(name, i, os.path.join(folder, "adapters", name)) for i, name in enumerate(ADAPTERS, 1)}
    more = {"lora_request": [adapters.get(case["adapter"]) for case in cases]} if "adapter" in cases[0] else {}
    return llm.generate([{"prompt_token_ids": case["prompt"]} for case in cases], settings, use_tqdm=False, **more)


def answers(done):
    return [list(request.outputs[0].token_ids) for request in done]


def refused(llm, folder):
    """Adapters that vLLM has to refuse: one that is not there, and one of a higher rank. Requests after them are served as if they had not been tried."""
    from vllm.lora.request import LoRARequest

    with open(os.path.join(folder, "adapters", ADAPTERS[0], "adapter_config.json"), encoding="utf-8") as f:
        config = json.load(f)
    with tempfile.TemporaryDirectory() as higher:
        with open(os.path.join(higher, "adapter_config.json"), "w", encoding="utf-8") as f:
            json.dump(config | {"r": 2 * HIGHEST_RANK}, f)
        for path, says in {os.path.join(folder, "adapters", "absent"): "No adapter found", higher: "max_lora_rank"}.items():
            try:
                llm.llm_engine.add_lora(LoRARequest("refused", len(ADAPTERS) + 1, path))
            except Exception as e:  # vLLM's types differ from release to release
                if says not in str(e):
                    raise
            else:
                raise RuntimeError(f"vLLM takes the adapter {path}")


def used():
    import torch

    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    return total - free


def slept(llm, cases, folder):
    """The answers after each sleep, at both levels in turns. After the second, the weights come from the folder again."""
    sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "test", "served"))
    import sleep_runtime

    sleep_runtime.install()
    tokens, awake = [], used()
    for i in range(CYCLES):
        level = LEVELS[i % len(LEVELS)]
        llm.sleep(level)
        if used() > awake // 2:
            raise RuntimeError(f"sleep {i}: {used()} of {awake} bytes are in use")
        llm.wake_up()
        if level == 2:
            llm.collective_rpc("reload_weights")
        tokens += answers(generate(llm, cases[:AFTER], folder))
    return tokens


@contextlib.contextmanager
def proposals(worker):
    """The tokens that a draft model proposes meanwhile, a row for each step: the tokens do not show drafts that were not accepted."""
    speculator, rows = worker and getattr(worker.model_runner, "speculator", None), []
    propose = getattr(speculator, "propose", None)

    def noted(*args, **kwargs):
        made = propose(*args, **kwargs)
        rows.append(made.clone())
        return made

    if propose:
        speculator.propose = noted
    yield rows
    if propose:
        del speculator.propose
    rows[:] = [row.flatten().tolist() for row in rows]


def loaded(llm, cases, folder):
    """The answers if the device has no keys and values of the prompts any more: the host has those of whole blocks. A prompt's last token is always computed."""
    llm.reset_prefix_cache()
    done = generate(llm, cases, folder)
    found, there = [request.num_cached_tokens for request in done], [(len(case["prompt"]) - 1) // BLOCK * BLOCK for case in cases]
    if found != there or not any(there):
        raise RuntimeError(f"tokens of each prompt that came from the host: {found}, not {there}")
    return answers(done)


def serve(llm, worker, feature, folder):
    """The tokens, and the drafts. worker: the only one, if it is in this process."""
    once, again = rounds(feature, folder)
    together = len(once) - (ALONE if feature == NGRAM else 0)
    if feature == LORA:
        refused(llm, folder)
    with proposals(worker) as drafts:
        tokens = answers(generate(llm, once[:together], folder))
        for case in once[together:]:
            tokens += answers(generate(llm, [case], folder))
    if feature == EAGLE and not drafts:
        raise RuntimeError("no drafts were proposed")
    if feature == SLEEP:
        tokens += slept(llm, again[:AFTER], folder)
    if feature == OFFLOAD:
        tokens += loaded(llm, again, folder)
    return tokens, drafts
