"""The test's part in a worker of vLLM, which may have a process of its own (LLM.collective_rpc).

In: a worker. Out: how it started, and how often each operator was computed on the host. Fails: as the mistake does that this start is to have.
"""

import os

import torch

import aten
import controls


def counted():
    """The operators since the last call."""
    counts = aten.COUNT.most_common()
    aten.COUNT.clear()
    return counts


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
