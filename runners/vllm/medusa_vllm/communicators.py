"""vLLM's communicators of several ranks, made so that graphs with their calls can be restored.

In: vLLM's making of its communicators, and later the session. Out: communicators whose memory is marked, and whose calls of NCCL are marked for captures.
Fails: as vLLM's own; reason says why graphs of a communicator cannot be restored.
"""

import torch
from vllm.distributed.device_communicators.cuda_communicator import CudaCommunicator

import medusa_graphs as medusa

from .all_reduce import Custom, Symmetric

# vLLM's implementations of all-reduce whose calls cannot be holes, by the attribute that holds each.
OTHERS = {
    "qr_comm": "quick all-reduce",
    "fi_ar_comm": "FlashInfer's all-reduce",
    "fi_pcie_ipc_ar_comm": "FlashInfer's all-reduce over PCIe",
    "aiter_ar_comm": "AITER's all-reduce",
}

made = []  # in this process, in the order in which all ranks make them


class Communicator(CudaCommunicator):
    def __init__(self, *args, **kwargs):
        # A segment that was allocated below is not the engine's: no other tensor may get a part of it.
        self.own_memory = torch.cuda.MemPool()
        with medusa.communicator(), torch.cuda.use_mem_pool(self.own_memory):
            super().__init__(*args, **kwargs)
        made.append(self)


def reason():
    """Why calls of these communicators cannot be holes of a graph, or None."""
    for communicator in made:
        for name, other in OTHERS.items():
            way = getattr(communicator, name, None)
            if way is not None and not way.disabled:
                return f"several ranks with {other} (supported: NCCL, custom all-reduce, symmetric memory)"
        if communicator.pynccl_comm is None or communicator.pynccl_comm.disabled:
            return "several ranks without PyNccl"
        if getattr(communicator, "all2all_manager", None) is not None:
            return f"several ranks with {type(communicator.all2all_manager).__name__} between experts"
    return None


def mark(session):
    """From now on, captures record calls of NCCL, of custom all-reduce and of symmetric memory as holes."""
    communicators = medusa.Communicators(session)
    for nccl in (communicator.pynccl_comm for communicator in made):
        nccl.nccl = communicators.add(nccl.nccl, nccl.comm, nccl.world_size)
    # Each communicator adds one of each kind, so that all numbers stay the same if one has none.
    customs = [Custom(communicator.ca_comm) for communicator in made]
    symmetric = [Symmetric(communicator.symm_mem_comm) for communicator in made]
    for way, communicator in zip(customs + symmetric, made + made):
        marked = communicators.add(way, None, communicator.world_size)
        if way:
            way.mark(marked, session)
    registers = [custom.way for custom in customs if custom]
    if registers:
        session.connect(lambda: [custom.register_graph_buffers() for custom in registers])
