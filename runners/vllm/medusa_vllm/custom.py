"""vLLM's custom all-reduce: its calls in graphs are holes, like those of NCCL.

In: a communicator's CustomAllreduce. Out: the same with NCCL's interface, for medusa.Communicators, and its calls marked for captures. Fails: RuntimeError if a graph
holds such a call and this start has no custom all-reduce.

A call that is captured registers its input with all ranks after the capture, by a handle that memory at chosen addresses does not have. So each captured call copies its
input to the communicator's own buffer, as vLLM does outside of graphs.
"""

import torch
from vllm.utils.torch_utils import current_stream

import medusa

SUM, TYPES = 0, {torch.float16: 6, torch.float32: 7, torch.bfloat16: 9}  # ncclRedOp_t, ncclDataType_t
OTHERS = "custom_all_gather", "custom_reduce_scatter"  # since 0.33


class Memory:
    """Bytes at an address."""

    def __init__(self, address, size):
        self.__cuda_array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (address, False), "version": 2}


def tensor(address, count, kind, device):
    dtype = next(dtype for dtype, number in TYPES.items() if number == kind)
    return torch.as_tensor(Memory(address, count * dtype.itemsize), device=device).view(dtype)


class Custom:
    """The custom all-reduce of a communicator, with NCCL's interface. It may have none."""

    def __init__(self, custom):
        # mutant: custom all-reduce that is off
        self.custom = custom if custom is not None and not custom.disabled else None
        self.all_reduce = self.custom and self.custom.all_reduce

    def __bool__(self):
        return self.custom is not None

    def ncclAllReduce(self, send, recv, count, dtype, op, communicator, stream):
        if not self:
            raise RuntimeError("make a collective call: custom all-reduce is off in this start (vLLM's log has the reason)")
        device = self.custom.device
        with torch.cuda.stream(torch.cuda.ExternalStream(stream, device)):
            self.all_reduce(tensor(send, count, dtype, device), out=tensor(recv, count, dtype, device), registered=False)

    def mark(self, marked, session):
        """From now on captures record the calls as holes. marked: what medusa.Communicators has made of this object."""

        def all_reduce(inp, *, out=None, registered=False):
            if not torch.cuda.is_current_stream_capturing():
                return self.all_reduce(inp, out=out, registered=registered)
            out = torch.empty_like(inp) if out is None else out
            marked.ncclAllReduce(inp.data_ptr(), out.data_ptr(), inp.numel(), TYPES[inp.dtype], SUM, None, current_stream().cuda_stream)
            return out

        register = self.custom.register_graph_buffers

        def register_graph_buffers():
            with medusa.communicator():
                register()

        self.custom.all_reduce, self.custom.register_graph_buffers = all_reduce, register_graph_buffers
        for name in OTHERS:
            if hasattr(self.custom, name):
                setattr(self.custom, name, refused(session, name, getattr(self.custom, name)))


def refused(session, name, function):
    def call(inp):
        if torch.cuda.is_current_stream_capturing():
            session.refuse(f"{name} in a graph")
        return function(inp)

    return call
