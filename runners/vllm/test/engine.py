"""Starts vLLM offline and runs decode steps through its worker, as its scheduler would issue them.

In: a folder with config.json, an attention backend. Out: one JSON object: how it started, its graphs, how often a step
replayed one. Fails: with the exception.

The kernels of vLLM and Triton are no-ops on the simulated GPU. One of them counts the sampled tokens, so vLLM's
scheduler would wait for ever. Therefore this program issues the steps to the worker, and ignores the tokens.
"""

import argparse
import ctypes
import gc
import json
import os
import sys
import tempfile

gc.disable()  # until all modules are imported: the search for garbage among their objects would take a third of a start

from compilations import Compilations

COMPILATIONS = Compilations()  # before the modules that it watches are imported

import captures
import held
import noops
import serving
import torch
import vllm
from vllm import LLM
from vllm.v1.worker.workspace import current_workspace_manager

gc.freeze()
gc.enable()

CAPTURE_SIZES = [1, 2, 4, 8]
PIECE_SIZES = [*CAPTURE_SIZES, 16]  # more tokens than requests
MAX_TOKENS = 480  # differs from each length of a weight: a weight's own kernels may have a block for each row


def arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("model")
    p.add_argument("--backend", default="FLASH_ATTN")
    p.add_argument("--graphs", default="FULL_DECODE_ONLY", help="vLLM's cudagraph_mode; the model is compiled where it has pieces")
    p.add_argument("--set", action="append", default=[], metavar="NAME=JSON", help="another argument of LLM")
    p.add_argument("--occupy", type=int, default=0, help="bytes of device memory that somebody else has")
    p.add_argument("--other-keys", action="store_true", help="restored graphs have other names than vLLM would capture")
    p.add_argument("--then-reload", action="store_true", help="weights are reloaded to another place after the first requests")
    p.add_argument("--no-requests", action="store_true")
    p.add_argument("--engine-process", action="store_true", help="vLLM's default: only start it, as a process of its own")
    p.add_argument("--places", help="file that receives where named tensors and graphs lie (medusa.Session.places)")
    return p.parse_args()


def graphs(mode, width):
    """width: tokens of a request in a decode step."""
    compiled = mode.endswith("PIECEWISE")
    return {"mode": 3 if compiled else 0, "cudagraph_mode": mode, "cudagraph_capture_sizes": [width * size for size in (PIECE_SIZES if compiled else CAPTURE_SIZES)]}


def settings(args):
    """The arguments of LLM."""
    more = {name: json.loads(value) for name, value in (pair.split("=", 1) for pair in args.set)}
    if "model" in more.get("speculative_config", {}):
        more["speculative_config"]["model"] = os.path.join(os.path.dirname(args.model), more["speculative_config"]["model"])
    return {
        "model": args.model,
        "load_format": "dummy",
        "skip_tokenizer_init": not os.path.exists(os.path.join(args.model, "tokenizer.json")),  # images need one
        "max_model_len": 256,
        "max_num_seqs": 8,
        "max_num_batched_tokens": MAX_TOKENS,
        "gpu_memory_utilization": 0.3,
        "attention_config": {"backend": args.backend},
        "compilation_config": graphs(args.graphs, 1 + more.get("speculative_config", {}).get("num_speculative_tokens", 0)),
        **more,
    }


def occupy(size):
    """Takes memory before the engine looks at the device, and never frees it."""
    cuda, address = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64()
    torch.cuda.init()
    torch.cuda.synchronize()
    if cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)):
        raise MemoryError(size)


def rename():
    """Makes the artifact's graphs look as if they were for other batches. The identity excludes such an artifact."""
    from medusa_vllm import use

    match = use.match
    use.match = lambda labels, restored: match(labels[1:], restored)


def reload(worker):
    """Moves a weight, so that restored graphs become invalid. vLLM's reload may fail: it has no checkpoint."""
    weight = next(worker.model_runner.model.parameters())
    weight.data = weight.data.clone()
    try:
        worker.reload_weights(weights_iterator=iter(()), is_checkpoint_format=False)
    except Exception as e:
        print(f"reload: {type(e).__name__}: {e}")


def mark(text):
    """A line in the simulated GPU's log of calls."""
    ctypes.CDLL("libcuda.so.1").calllog_mark(text.encode())


def in_worker(wrapper, args):
    """Runs in a worker's process, which is forked from this one or this one itself."""
    return sys.modules["__main__"].report(wrapper.worker, args)


def report(worker, args):
    """Serves requests. Returns the facts about one worker as JSON."""
    medusa = getattr(worker, "graphs", None)
    if args.places and not os.environ.get("MEDUSA_RUN"):
        several = worker.parallel_config.world_size > 1
        with open(f"{args.places}.{worker.rank}" if several else args.places, "w", encoding="utf-8") as f:
            json.dump(held.places(worker.model_runner) | {"process": os.getpid()}, f)
    serving.count(worker.model_runner)
    batches = [] if args.no_requests else [1, 3, 8]
    mark("requests")
    launches = {batch: serving.serve(worker, batch) for batch in batches}
    adapted = {}
    if worker.vllm_config.lora_config:
        with tempfile.TemporaryDirectory(prefix="adapter-") as folder:
            adapted = {batch: serving.serve(worker, batch, serving.adapter(worker, folder)) for batch in batches}
    later = {}
    if args.then_reload:
        reload(worker)
        later = {batch: serving.serve(worker, batch) for batch in batches}
    return json.dumps({
        "device": torch.cuda.get_device_name(0),
        "rank": worker.rank,
        "vllm": vllm.__version__,
        "torch": torch.__version__,
        "start": "restored" if medusa and medusa.use.restored else "native",
        "keys": held.keys(worker.model_runner),
        "results": held.results(),
        "max_tokens": MAX_TOKENS,
        "workspace": sum(t.numel() for t in current_workspace_manager()._current_workspaces if t is not None),
        "steps": {b: serving.expected(worker.model_runner, b) for b in launches},
        "launches": launches,
        "adapted": adapted,
        "later": later,
        "states": captures.states,
        "changes": captures.changes,
        "compiled": COMPILATIONS.counts(),
    })


def main():
    args = arguments()
    COMPILATIONS.watch_triton()
    if args.places:
        os.environ["MEDUSA_VLLM_PLACES"] = args.places
    if args.occupy:
        occupy(args.occupy)
    if args.other_keys and os.environ.get("MEDUSA_RUN"):
        rename()
    captures.count()
    captures.count_states()
    captures.watch()
    noops.install()
    if "speculative_config" in settings(args):
        noops.known_tokens()
    llm = LLM(**settings(args))
    if args.engine_process:
        return
    for line in llm.llm_engine.engine_core.engine_core.model_executor.collective_rpc(in_worker, args=(args,)):
        print(line)


if __name__ == "__main__":
    main()
