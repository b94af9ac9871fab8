"""The platform plug-in: it gives vLLM's CUDA platform Medusa's worker class.

In: vLLM's search for platforms, its configuration. Out: worker.Worker if the user left the worker class open.
Fails: never; a reason for a native start is reported once on standard error.
"""

import os
import sys
from importlib import metadata

from . import contract, engines, fingerprint, gate, metrics
from .contract import ENV_ARTIFACT

WORKER = "medusa_vllm.worker.Worker"
GROUP, NAME = "vllm.platform_plugins", "medusa"


def native(reason):
    """Reports a native start once, in the status too, for all processes that vLLM starts from here."""
    import medusa_graphs as medusa
    from medusa_graphs import attach

    # mutant: reason of a start that its environment switched on
    if attach.wanted() or attach.attached():
        attach.native("unsupported", reason)
        metrics.place(True)
    try:
        session = medusa.Session()
        session.refuse(reason)
        session.ready()
    except medusa.MedusaError as e:
        print(f"medusa: native start: {reason} ({e})", file=sys.stderr, flush=True)
    os.environ[contract.ENV_VLLM_STAYS_OUT] = "1"


def activate():
    """vLLM's entry point: the name of a platform class, or None if Medusa takes no part. If a status is asked for, a start
    without Medusa reports its stages."""
    run = os.environ.get(contract.ENV_RUN) or os.environ.get(ENV_ARTIFACT)
    if not (run or os.environ.get(contract.ENV_STATUS)) or os.environ.get(contract.ENV_VLLM_STAYS_OUT):
        return None
    if not importing():
        metrics.place()
    from medusa_graphs import attach

    reason = attach.twice() or version_reason(metadata.version("vllm"), metadata.version("torch")) or rival()
    if reason:
        if run:
            native(reason)
        return None
    from vllm.platforms import cuda_platform_plugin

    return "medusa_vllm.cuda.Platform" if cuda_platform_plugin() else None


def importing():
    """Whether this is a process of `medusa pool` whose start has not come yet. The start's own file is found later, by metrics.register."""
    return getattr(sys.modules.get("medusa_pool"), "importing", False)


def version_reason(vllm, torch):
    """vLLM is being imported, so its module holds its folder."""
    (folder,) = sys.modules["vllm"].__path__
    return gate.version_reason(vllm, torch, lambda release: fingerprint.difference(release, folder), os.environ.get(contract.ENV_VLLM, ""))


def rival(points=None):
    """vLLM takes at most one platform plug-in, so another that is active goes first."""
    for point in metadata.entry_points(group=GROUP) if points is None else points:
        # mutant: platform of others
        if point.name != NAME and point.load()() is not None:
            return f"another platform plug-in is active ({point.name})"
    return None


def choose_engines(config, refuse=native):
    """Whether the engines that this process may start take part. They get to know that they are several. If they do not, all of them start as vLLM's own,
    for one reason: the worker that each would get cannot know how many there are."""
    if os.environ.get(contract.ENV_VLLM_STAYS_OUT):
        return False  # refused before: vLLM makes its configuration more than once
    if config.parallel_config.data_parallel_size > 1:
        run = os.environ.get(contract.ENV_RUN)
        reason = gate.engines_reason(config, metadata.version("vllm"), run or contract.RUN_RESTORE)
        # mutant: engines that are not supported
        if reason:
            if run:
                refuse(reason)
            return False
        engines.announce(config.parallel_config)
    return True


def choose_worker(parallel_config, refuse=native):
    """A worker class that the user chose stays."""
    if parallel_config.worker_cls == "auto":
        parallel_config.worker_cls = WORKER
    # mutant: worker of the user
    elif parallel_config.worker_cls != WORKER and os.environ.get(contract.ENV_RUN):
        refuse(f"another worker class is chosen ({parallel_config.worker_cls})")
