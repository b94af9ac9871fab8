"""The platform plug-in: it names the worker class, and changes nothing else about CUDA.

In: vLLM's search for platforms, its configuration. Out: worker.Worker where the user left the worker class open.
Fails: nothing; each reason to stay out is said once on standard error.
"""

import os
import sys
from importlib import metadata

from . import gate

WORKER = "medusa_vllm.worker.Worker"
GROUP, NAME = "vllm.platform_plugins", "medusa"


def native(reason):
    print(f"medusa: native start: {reason}", file=sys.stderr, flush=True)


def activate():
    """vLLM's entry point: the name of a platform class, or None where this is not for Medusa."""
    if not os.environ.get("MEDUSA_RUN"):
        return None
    reason = gate.version_reason(metadata.version("vllm"), metadata.version("torch")) or rival()
    if reason:
        native(reason)
        return None
    from vllm.platforms import cuda_platform_plugin

    return "medusa_vllm.cuda.Platform" if cuda_platform_plugin() else None


def rival(points=None):
    """vLLM takes at most one platform plug-in, so another that is active goes first."""
    for point in metadata.entry_points(group=GROUP) if points is None else points:
        if point.name != NAME and point.load()() is not None:
            return f"another platform plug-in is active ({point.name})"
    return None


def choose_worker(parallel_config):
    """The user's choice stands."""
    if parallel_config.worker_cls == "auto":
        parallel_config.worker_cls = WORKER
    elif parallel_config.worker_cls != WORKER:
        native(f"another worker class is chosen ({parallel_config.worker_cls})")
