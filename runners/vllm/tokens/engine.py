"""Unmodified vLLM generates tokens on the simulated GPU, with its own scheduler.

    engine.py MODEL --graphs FULL_DECODE_ONLY

In: a folder of checkpoint.py, and vLLM's settings. Out: a line of JSON: the tokens of the folder's requests, or of others that come and go (--steps), also while
an elastic KV cache changes its size (--resizes); how it started; operators that ran on the host. Fails: with the exception; if a kernel of machine code is
needed; if an operator of the host is captured.
"""

import argparse
import gc
import json
import os
import sys

import torch

import aten
import controls
import extras
import workers
from options import BATCHED, MLA, PARTS, ROOMY, TIGHT, TRITON, options


def arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("model")
    p.add_argument("--graphs", default="FULL_DECODE_ONLY", help="vLLM's cudagraph_mode; the model is compiled if it has pieces")
    p.add_argument("--dtype", default="float32")
    p.add_argument("--backend", choices=[TRITON, MLA], default=TRITON, help="vLLM's attention")
    p.add_argument("--blocks", type=int, default=ROOMY, help="of the KV cache")
    p.add_argument("--steps", type=int, help="steps with requests that come and go (traffic.py), in a KV cache that is too small for them")
    p.add_argument("--crowd", action="store_true", help="more requests run at a time, in larger blocks")
    p.add_argument("--resizes", type=int, help="random sizes of an elastic KV cache, with requests that come and go (resizes.py)")
    p.add_argument("--feature", choices=extras.ALL, help="what the case is about besides (extras.py)")
    p.add_argument("--loader", default="auto", help="vLLM's load_format")
    p.add_argument("--fails", action="store_true", help="a resize fails and is repeated (SIMGPU_FAIL), with such requests")
    return p.parse_args()


def install(feature):
    """The test's operators. Processes of ranks, and this one then, get them as a plug-in of vLLM's (served)."""
    if feature in extras.RANKS:
        return
    import experts
    import kernels
    import latent

    controls.of_replays()
    aten.install()
    kernels.install()
    experts.install()
    latent.install()
    extras.install(feature)


def start(args):
    # vLLM collects garbage at each of its stages, and would look at every object of the modules: half of a start's time.
    gc.disable()
    from vllm import LLM

    install(args.feature)
    gc.freeze()
    gc.enable()
    blocks, step = (TIGHT, PARTS) if args.steps else (args.blocks, BATCHED)
    more, each = extras.options(args.feature, args.model)
    return LLM(model=args.model, skip_tokenizer_init=True, **options(args.dtype, args.graphs, blocks, args.crowd, step, each, args.backend), load_format=args.loader, **more)


def serve(llm, worker, args):
    """The tokens, the events that requests have met, and drafts."""
    if args.steps:
        from traffic import Traffic

        return *Traffic(llm, args.steps).run(), []
    if args.resizes or args.fails:
        from resizes import Crowd

        crowd = Crowd(llm, args.model)
        return [], crowd.resized(args.resizes) if args.resizes else crowd.failed(), []
    tokens, drafts = extras.serve(llm, worker, args.feature, args.model)
    return tokens, None, drafts


def main():
    args = arguments()
    controls.of_candidate()
    llm = start(args)
    if later := os.environ.get("TOKENS_LATER"):  # a batch of another size may need another form of a kernel, as in every start
        os.environ["TRITON_PTXAS_PATH"] = later
    core = llm.llm_engine.engine_core.engine_core
    worker = None if args.feature in extras.RANKS else core.model_executor.driver_worker.worker
    started = llm.collective_rpc(workers.started)
    tokens, seen, drafts = serve(llm, worker, args)
    served = llm.collective_rpc(workers.served)
    print(json.dumps({
        "device": served[0]["device"],
        "vllm": sys.modules["vllm"].__version__,
        "start": ", ".join(sorted({told["start"] for told in served})),
        "tokens": tokens,
        "seen": seen,
        "drafts": drafts,
        "blocks": core.scheduler.kv_cache_manager.block_pool.num_gpu_blocks,
        "mapped": served[0]["mapped"],
        "host": {"start": started, "generate": [told["host"] for told in served]},
    }))  # fmt: skip


if __name__ == "__main__":
    main()
