"""Calls of communicators with NCCL's interface. A graph that holds one is restored with the call made anew.

In: a session, and for each communicator the library that makes its calls: an object with NCCL's functions as methods, which raise if a call
fails. Out: an object to be used in the library's place, which marks the arguments of each call for captures. If the session is alone, there is
no library, and local operations stand in for the calls. Fails: a session refuses its start if a capture contains a call of another kind, or one
within a group, or if a rank that is alone makes such a call at all.
"""

import torch

from . import contract, marks

ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST = range(1, 5)
KINDS = 256  # an operation is the call's kind plus KINDS times the communicator's number
SIZES = (1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1)  # bytes of a value, by ncclDataType_t
HOLES = "ncclAllReduce", "ncclAllGather", "ncclReduceScatter", "ncclBroadcast"
OTHERS = "ncclReduce", "ncclSend", "ncclRecv", "ncclGroupStart"


class Communicators:
    """A session's communicators, numbered in the order in which they were added, which is the same in every start and on every rank."""

    def __init__(self, session):
        self.session, self.all = session, []
        session.collectives(self.make)

    def add(self, library, communicator, ranks):
        """The object to use in the library's place. The communicator was made within marks.communicator(). If the session is alone, both are None."""
        self.all.append((library, communicator))
        return Marked(self.session, library, len(self.all) - 1, ranks)

    def make(self, call, stream):
        """One call of a restored graph, on a stream that captures."""
        # mutant: call of a rank that is alone
        if self.session.alone:
            self.session.stand_in(call, stream)
            return
        library, communicator = self.all[call.operation // KINDS]
        kind, data = call.operation % KINDS, (call.send, call.recv, call.count, call.dtype)
        # mutant: call that is made anew
        if kind == ALL_REDUCE:
            library.ncclAllReduce(*data, call.reduce, communicator, stream)
        elif kind == ALL_GATHER:
            library.ncclAllGather(*data, communicator, stream)
        elif kind == REDUCE_SCATTER:
            library.ncclReduceScatter(*data, call.reduce, communicator, stream)
        elif kind == BROADCAST:
            library.ncclBroadcast(*data, call.root, communicator, stream)
        else:
            raise ValueError(f"make a collective call: kind {kind} (known: {ALL_REDUCE} to {BROADCAST})")


def number(pointer):
    """The number of an address or a stream, which may be a ctypes object. Such an object holds None for 0."""
    return getattr(pointer, "value", pointer) or 0


class Marked:
    """A communicator's library."""

    def __init__(self, session, library, communicator, ranks):
        self.session, self.library, self.first, self.ranks = session, library, communicator * KINDS, ranks

    def __getattr__(self, name):
        # mutant: other calls of a rank that is alone
        if self.session.alone:
            return lambda *args: self.session.refuse(f"{name} of a rank that is alone (supported: {', '.join(HOLES)})")
        function = getattr(self.library, name)
        # mutant: calls that are no hole
        return self.refused(name, function) if name in OTHERS else function

    def refused(self, name, function):
        def call(*args):
            if torch.cuda.is_current_stream_capturing():
                self.session.refuse(f"{name} in a graph")
            return function(*args)

        return call

    def hole(self, make, kind, send, sent, recv, received, count, dtype, stream, reduce=0, root=0):
        """One call. make makes it with the library; sent and received: how many values the buffers hold."""
        size = SIZES[dtype]
        call = contract.Collective(self.first + kind, dtype, reduce, root, count, number(send), sent * size, number(recv), received * size)
        with marks.collective(call, number(stream)):
            if self.session.alone:
                self.session.stand_in(call, number(stream))
            else:
                make()

    def ncclAllReduce(self, send, recv, count, dtype, op, communicator, stream):
        def make():
            self.library.ncclAllReduce(send, recv, count, dtype, op, communicator, stream)

        self.hole(make, ALL_REDUCE, send, count, recv, count, count, dtype, stream, reduce=op)

    def ncclAllGather(self, send, recv, count, dtype, communicator, stream):
        def make():
            self.library.ncclAllGather(send, recv, count, dtype, communicator, stream)

        self.hole(make, ALL_GATHER, send, count, recv, count * self.ranks, count, dtype, stream)

    def ncclReduceScatter(self, send, recv, count, dtype, op, communicator, stream):
        def make():
            self.library.ncclReduceScatter(send, recv, count, dtype, op, communicator, stream)

        self.hole(make, REDUCE_SCATTER, send, count * self.ranks, recv, count, count, dtype, stream, reduce=op)

    def ncclBroadcast(self, send, recv, count, dtype, root, communicator, stream):
        # mutant: broadcast that only receives
        source = send if number(send) else recv  # only the root's is read

        def make():
            self.library.ncclBroadcast(source, recv, count, dtype, root, communicator, stream)

        self.hole(make, BROADCAST, source, count, recv, count, count, dtype, stream, root=root)
