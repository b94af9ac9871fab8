"""vLLM's own implementations of all-reduce: their calls in graphs are holes, like those of NCCL.

In: a communicator's CustomAllreduce or SymmMemCommunicator. Out: the same with NCCL's interface, for medusa.Communicators, and its calls marked for captures. Fails:
RuntimeError if a graph holds such a call and this start cannot make it.

A captured call of custom all-reduce registers its input with all ranks after the capture, by a handle that memory at chosen addresses does not have. So each captured call
copies its input to the communicator's own buffer, as vLLM does outside of graphs. Symmetric memory copies to its own buffer and back in any case.
"""

import torch
from vllm.utils.torch_utils import current_stream

import medusa_graphs as medusa

SUM, TYPES = 0, {torch.float16: 6, torch.float32: 7, torch.bfloat16: 9}  # ncclRedOp_t, ncclDataType_t
OTHERS = "custom_all_gather", "custom_reduce_scatter"  # since 0.33


class Memory:
    """Bytes at an address."""

    def __init__(self, address, size):
        self.__cuda_array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (address, False), "version": 2}


def tensor(address, count, kind, device):
    dtype = next(dtype for dtype, number in TYPES.items() if number == kind)
    return torch.as_tensor(Memory(address, count * dtype.itemsize), device=device).view(dtype)


class AllReduce:
    """One implementation of a communicator's, with NCCL's interface. The communicator may have none."""

    name = ""

    def __init__(self, way):
        # mutant: all-reduce that is off
        self.way = way if way is not None and not way.disabled else None
        self.all_reduce = self.way and self.way.all_reduce  # vLLM's own

    def __bool__(self):
        return self.way is not None

    def make(self, send, recv):
        """One call, on the current stream. Its output, or None if vLLM would make it in another way."""
        return self.all_reduce(send, out=recv)

    def ncclAllReduce(self, send, recv, count, dtype, op, communicator, stream):
        if not self:
            raise RuntimeError(f"make a collective call: {self.name} is off in this start (vLLM's log has the reason)")
        device = self.way.device
        with torch.cuda.stream(torch.cuda.ExternalStream(stream, device)):
            # mutant: call that vLLM would make in another way
            if self.make(tensor(send, count, dtype, device), tensor(recv, count, dtype, device)) is None:
                raise RuntimeError(f"make a collective call: {self.name} does not take {count} values of type {dtype} in this start")

    def hole(self, marked, inp, out):
        """A call that a capture records as a hole."""
        out = torch.empty_like(inp) if out is None else out
        marked.ncclAllReduce(inp.data_ptr(), out.data_ptr(), inp.numel(), TYPES[inp.dtype], SUM, None, current_stream().cuda_stream)
        return out


class Custom(AllReduce):
    """Custom all-reduce."""

    name = "custom all-reduce"

    def make(self, send, recv):
        return self.all_reduce(send, out=recv, registered=False)

    def mark(self, marked, session):
        """From now on captures record the calls as holes. marked: what medusa.Communicators has made of this object."""

        def all_reduce(inp, *, out=None, registered=False):
            if not torch.cuda.is_current_stream_capturing():
                return self.all_reduce(inp, out=out, registered=registered)
            return self.hole(marked, inp, out)

        register = self.way.register_graph_buffers

        def register_graph_buffers():
            with medusa.communicator():
                register()

        self.way.all_reduce, self.way.register_graph_buffers = all_reduce, register_graph_buffers
        for name in OTHERS:
            if hasattr(self.way, name):
                setattr(self.way, name, refused(session, name, getattr(self.way, name)))


class Symmetric(AllReduce):
    """All-reduce by symmetric memory, which torch maps on all devices and binds to a multicast object."""

    name = "symmetric memory"

    def mark(self, marked, session):
        """As Custom.mark."""

        def all_reduce(inp, *, out=None):
            # mutant: call of symmetric memory that vLLM would make in another way
            if not torch.cuda.is_current_stream_capturing() or not self.way.should_use_symm_mem(inp):
                return self.all_reduce(inp, out=out)
            return self.hole(marked, inp, out)

        self.way.all_reduce = all_reduce


def refused(session, name, function):
    def call(inp):
        if torch.cuda.is_current_stream_capturing():
            session.refuse(f"{name} in a graph")
        return function(inp)

    return call
