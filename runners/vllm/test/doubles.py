"""Objects of the tests in place of vLLM's. They need neither vLLM nor torch."""

import dataclasses
import enum
import types


OFFLOADING = types.SimpleNamespace(kv_connector="OffloadingConnector")


class Mode(enum.Enum):
    NONE = 0
    PIECEWISE = 1
    FULL = 2
    FULL_DECODE_ONLY = (2, 0)
    FULL_AND_PIECEWISE = (2, 1)


def config(**changes):
    """A configuration that is supported; changes are given as path__to__value=..."""
    space = types.SimpleNamespace
    c = space(
        parallel_config=space(world_size=1, data_parallel_size=1, worker_cls="auto"),
        compilation_config=space(cudagraph_mode=Mode.FULL_DECODE_ONLY, cudagraph_capture_sizes=[1, 2], use_inductor_graph_partition=False),
        lora_config=None,
        speculative_config=None,
        kv_transfer_config=None,
        model_config=space(
            enforce_eager=False, enable_cumem_allocator=False, enable_sleep_mode=False, sleep_mode_backend="cumem", multimodal_config=None, runner_type="generate",
            is_hybrid=False, is_attention_free=False, is_encoder_decoder=False,
            max_model_len=256, dtype="bfloat16", model="org/name", revision="abc",
            hf_config=space(to_json_string=lambda: "{}"),
        ),
        cache_config=space(gpu_memory_utilization=0.9, block_size=16, cache_dtype="auto", kv_sharing_fast_prefill=False),
        scheduler_config=space(max_num_seqs=8, max_num_batched_tokens=512),
        load_config=space(load_format="dummy"),
        compute_hash=lambda: "hash",
    )  # fmt: skip
    for path, value in changes.items():
        *owners, last = path.split("__")
        owner = c
        for name in owners:
            owner = getattr(owner, name)
        setattr(owner, last, value)
    return c


@dataclasses.dataclass(frozen=True)
class Desc:
    cg_mode: Mode
    num_tokens: int
    num_reqs: int
    uniform_token_count: int = 1
    num_active_loras: int = 0


@dataclasses.dataclass(frozen=True)
class V1Desc:
    num_tokens: int
    num_reqs: int
    uniform: bool = True
    num_active_loras: int = 0


@dataclasses.dataclass(frozen=True)
class NewDesc(Desc):
    """As of newer releases."""

    max_query_len: int | None = None
    num_ubatches: int = 1
