"""The test's part in a worker of vLLM, which may have a process of its own (LLM.collective_rpc).

In: a worker. Out: how it started, and how often each operator was computed on the host. Fails: as the mistake does that this start is to have.
"""

import functools
import os

import torch

import aten
import controls


def counted():
    """The operators since the last call."""
    counts = aten.COUNT.most_common()
    aten.COUNT.clear()
    return counts


def wait_after_steps():
    """Only a thread that waits runs work of the simulated GPU. Only rank 0 waits for a step's tokens, and would wait for the others' part of a collective call."""
    from vllm.v1.worker.gpu_worker import Worker

    def waiting(step):
        @functools.wraps(step)
        def whole(*args, **kwargs):
            result = step(*args, **kwargs)
            torch.cuda.synchronize()
            return result

        return whole

    for name in "execute_model", "sample_tokens":
        setattr(Worker, name, waiting(getattr(Worker, name)))


def started(worker):
    """Before requests."""
    if os.environ.get("TOKENS_MISTAKE") == controls.METADATA:
        controls.metadata(worker.model_runner)
    return counted()


def served(worker):
    """After requests."""
    torch.cuda.synchronize()
    medusa = getattr(worker, "graphs", None)
    return {
        "device": torch.cuda.get_device_name(),
        "start": "restored" if medusa and medusa.use.restored else "native",
        "mapped": getattr(getattr(worker, "cache", None), "ranges", None) and worker.cache.ranges.mapped,
        "host": counted(),
    }
