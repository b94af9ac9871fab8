"""Steps that vLLM's scheduler could issue, of requests that are made up.

In: a worker whose KV cache exists. Out: each step's effects on the worker; the requests are finished at the end. Fails: as the worker does.
"""

import contextlib

from vllm import SamplingParams
from vllm.v1.core.sched.output import CachedRequestData, NewRequestData, SchedulerOutput

from .queries import width

ROUNDS = 1, 3, 2, 8, 5  # requests, of a prefill and a decode step each
OUTPUT = 3  # tokens that a request asks for; it may be finished before


def prefill(worker, names, lengths, adapter=None):
    """Each request has a block of the KV cache to itself. adapter: of all of them."""
    output = SchedulerOutput.make_empty()
    output.scheduled_new_reqs = [
        NewRequestData(
            req_id=name, prompt_token_ids=list(range(n)), mm_features=[], sampling_params=SamplingParams(max_tokens=OUTPUT, temperature=0),
            pooling_params=None, block_ids=tuple([1 + i] for _ in range(groups(worker))), num_computed_tokens=0, lora_request=adapter,
            prefill_token_ids=list(range(n)),
        )
        for i, (name, n) in enumerate(zip(names, lengths))
    ]  # fmt: skip
    return scheduled(worker, output, dict(zip(names, lengths)))


def decode(worker, names, computed, made):
    """computed: tokens of each request that lie in the KV cache; made: tokens that each has got. With speculative decoding, each request has as many
    drafts as the graphs are for."""
    output, cached = SchedulerOutput.make_empty(), CachedRequestData.make_empty()
    cached.req_ids = names
    cached.num_computed_tokens = computed
    cached.num_output_tokens = [made] * len(names)
    cached.new_block_ids = [None] * len(names)
    output.scheduled_cached_reqs = cached
    drafts = width(worker.vllm_config) - 1
    if drafts:
        output.scheduled_spec_decode_tokens = {name: [0] * drafts for name in names}
    return scheduled(worker, output, dict.fromkeys(names, 1 + drafts))


def scheduled(worker, output, tokens):
    output.num_scheduled_tokens = tokens
    output.num_spec_tokens_to_schedule = width(worker.vllm_config) - 1
    output.total_num_scheduled_tokens = sum(tokens.values())
    output.num_common_prefix_blocks = [0] * groups(worker)
    return output


def groups(worker):
    return len(worker.model_runner.kv_cache_config.kv_cache_groups)


@contextlib.contextmanager
def unconnected(worker):
    """Meanwhile a KV connector stands by: its scheduler has not seen these requests."""
    connector = getattr(worker.model_runner, "kv_connector", None)
    if connector:
        connector.set_disabled(True)
    try:
        yield
    finally:
        if connector:
            connector.set_disabled(False)


def run(worker, output):
    worker.execute_model(output)
    worker.sample_tokens(None)


def finish(worker, names):
    output = SchedulerOutput.make_empty()
    output.finished_req_ids = set(names)
    worker.execute_model(output)


def varied(worker):
    """Ten steps of different batches and lengths. Yields after each."""
    most = min(worker.scheduler_config.max_num_seqs, worker.model_runner.kv_cache_config.num_blocks - 1)
    for i, wanted in enumerate(ROUNDS):
        names = [f"medusa-{i}-{n}" for n in range(min(wanted, most))]
        lengths = [2 + (i + n) % 3 for n in range(len(names))]
        run(worker, prefill(worker, names, lengths))
        yield
        run(worker, decode(worker, names, lengths, 1))
        yield
        finish(worker, names)
