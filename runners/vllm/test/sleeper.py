"""Starts vLLM offline in sleep mode, and lets it sleep and wake as often as it is told.

In: as engine.py, and --cycles. Out: one JSON object: how it started, and for each cycle its level, bytes of the device in use asleep and awake,
milliseconds of waking up, of the check of graphs if
that is not part of it, and of the first request, graphs launched for requests, and the keys of vLLM's graphs. Fails: with the exception, or if memory of vLLM's that
no step writes has changed.
"""

import argparse
import ctypes
import hashlib
import json
import sys
import time

import captures
import engine
import held
import noops
import serving
import torch
import vllm
from served import sleep_runtime
from vllm import LLM
from vllm.device_allocator import cumem

LEVELS = 1, 2


def arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--cycles", type=int, default=0)
    p.add_argument("--tags", action="store_true", help="wakes the KV cache first and weights after it, each by its tag")
    p.add_argument("--take", action="store_true", help="during the first sleep, somebody else takes all memory but what sleep mode's allocator had")
    p.add_argument("--spoil", action="store_true", help="a weight that vLLM keeps is changed while it sleeps for the first time")
    own, rest = p.parse_known_args()
    sys.argv[1:] = rest
    return own, engine.arguments()


def used():
    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    return total - free


def constants(worker):
    """A hash of the bytes that no step writes: buffers of the model, and addresses that vLLM keeps on the device."""
    found = hashlib.sha256()
    tables = vars(worker.model_runner.block_tables) if hasattr(worker.model_runner, "block_tables") else {}
    for t in [t for _, t in worker.model_runner.model.named_buffers()] + [t for t in tables.values() if isinstance(t, torch.Tensor)]:
        found.update(t.cpu().reshape(-1).contiguous().view(torch.uint8).numpy().tobytes())
    return found.hexdigest()


def take(size):
    """Takes memory as another process would. Returns a function that frees it."""
    cuda, at = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64()
    if cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(size)):
        raise MemoryError(size)
    return lambda: cuda.cuMemFree_v2(at)


def cycle(worker, own, level, weights):
    worker.sleep(level)
    asleep, give_back = used(), lambda: None
    kept = cumem.CuMemAllocator.get_instance().pointer_to_data.values()
    if own.take:
        own.take, give_back = False, take(torch.cuda.mem_get_info()[0] - sum(d.handle[1] for d in kept))
    if own.spoil:
        own.spoil = False
        next(d.cpu_backup_tensor for d in kept if d.tag == "weights").fill_(3)
    began = time.perf_counter()
    for tags in [["kv_cache"], ["weights"]] if own.tags else [None]:
        worker.wake_up(tags)
    woke = time.perf_counter() - began
    give_back()
    if level == 2:
        for p, value in weights:
            p.copy_(value)
    began = time.perf_counter()
    getattr(worker, "check", torch.cuda.synchronize)()
    checked = time.perf_counter()
    launches = serving.serve(worker, 1)
    served = time.perf_counter()
    launches += serving.serve(worker, 8)
    keys = held.keys(worker.model_runner)
    times = {"woke": 1000 * woke, "checked": 1000 * (checked - began), "first": 1000 * (served - checked)}
    return times | {"level": level, "asleep": asleep, "awake": used(), "launches": launches, "keys": keys}


def main():
    own, args = arguments()
    captures.count()
    noops.install()
    if "speculative_config" in engine.settings(args):
        noops.known_tokens()
    llm = LLM(**engine.settings(args))
    sleep_runtime.install()
    worker = llm.llm_engine.engine_core.engine_core.model_executor.driver_worker.worker
    serving.count(worker.model_runner)
    engine.mark("requests")
    steps = sum(serving.expected(worker.model_runner, batch) for batch in (1, 8))
    first = sum(serving.serve(worker, batch) for batch in (1, 8))
    weights = [(p, p.detach().cpu()) for p in worker.model_runner.model.parameters()]
    known, cycles, spoilt = constants(worker), [], own.spoil
    with torch.inference_mode():
        for i in range(own.cycles):
            cycles.append(cycle(worker, own, LEVELS[i % len(LEVELS)], weights))
            if not spoilt and constants(worker) != known:
                raise RuntimeError(f"memory that no step writes has changed in sleep {i}")
    medusa = getattr(worker, "graphs", None)
    print(json.dumps({
        "device": torch.cuda.get_device_name(0), "vllm": vllm.__version__, "torch": torch.__version__,
        "start": "restored" if medusa and medusa.use.restored else "native",
        "keys": held.keys(worker.model_runner), "steps": steps, "launches": first, "cycles": cycles,
    }))  # fmt: skip


if __name__ == "__main__":
    main()
