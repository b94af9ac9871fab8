"""vLLM's communicators of several ranks, made so that graphs with their calls can be restored.

In: vLLM's making of its communicators, and later the session. Out: communicators whose memory is marked, and whose calls of NCCL are marked for captures.
Fails: as vLLM's own; reason says why graphs of a communicator cannot be restored.
"""

import torch
from vllm.distributed.device_communicators.cuda_communicator import CudaCommunicator

import medusa

# vLLM's other implementations of all-reduce, by the attribute that holds each. NCCL takes the calls that they refuse.
OTHERS = {
    "ca_comm": "custom all-reduce",
    "qr_comm": "quick all-reduce",
    "symm_mem_comm": "symmetric memory",
    "fi_ar_comm": "FlashInfer's all-reduce",
    "fi_pcie_ipc_ar_comm": "FlashInfer's all-reduce over PCIe",
    "aiter_ar_comm": "AITER's all-reduce",
}

made = []  # in this process, in the order in which all ranks make them


class Communicator(CudaCommunicator):
    def __init__(self, *args, **kwargs):
        # This leaves a free block for the tensors of the constructor: a segment that was allocated below would not be the engine's.
        torch.zeros(1, device=args[1] if len(args) > 1 else kwargs["device"])
        with medusa.communicator():
            super().__init__(*args, **kwargs)
        made.append(self)


def reason():
    """Why calls of these communicators cannot be holes of a graph, or None."""
    for communicator in made:
        for name, other in OTHERS.items():
            way = getattr(communicator, name, None)
            if way is not None and not way.disabled:
                return f"several ranks with {other} (supported: NCCL)"
        if getattr(getattr(communicator, "symm_mem_comm", None), "buffer", None) is not None:
            return "several ranks with a buffer of symmetric memory (VLLM_ALLREDUCE_USE_SYMM_MEM=0 leaves it out)"
        if communicator.pynccl_comm is None or communicator.pynccl_comm.disabled:
            return "several ranks without PyNccl"
        if getattr(communicator, "all2all_manager", None) is not None:
            return f"several ranks with {type(communicator.all2all_manager).__name__} between experts"
    return None


def mark(session):
    """From now on, captures record calls of NCCL as holes."""
    communicators = medusa.Communicators(session)
    for nccl in (communicator.pynccl_comm for communicator in made):
        nccl.nccl = communicators.add(nccl.nccl, nccl.comm, nccl.world_size)
