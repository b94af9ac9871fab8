"""What a graph that is part of a step leaves for the rest of the step.

In: tensors, most in memory that only graphs have allocated, when they are captured. Out: their places, types, shapes and strides for a note in the artifact, since nothing in a
restored start would tell them; there, the tensors again. Fails: what verification could not fill with numbers is refused.
"""

import torch

import medusa
from medusa import marks
from medusa.ranges import Memory


class Results:
    def __init__(self, session, memory=None):
        """memory: names by address and bytes, which an engine's models share."""
        self.session = session
        self.memory = {} if memory is None else memory

    def place(self, t):
        """Says where a result lies, and what tensor it is there: a named tensor and an offset in it if it is the engine's own, else memory of graphs, which gets a
        name."""
        # mutant: results that are the engine's own
        own = self.own(t) if isinstance(t, torch.Tensor) else None
        if own:
            return *own, *form(t)
        if not isinstance(t, torch.Tensor) or not t.is_floating_point():
            self.session.refuse(f"a part of the model that leaves {getattr(t, 'dtype', type(t).__name__)}")
            return None
        at = t.data_ptr(), marks.extent(t)
        if at not in self.memory:
            self.memory[at] = f"result {len(self.memory)}"
            marks.tensor(self.memory[at], t, medusa.OUTPUT)
        marks.result(self.memory[at])
        return self.memory[at], None, *form(t)

    def own(self, t):
        """The tensor with a name that t is part of, which the engine has in each process."""
        at, end = t.data_ptr(), t.data_ptr() + marks.extent(t)
        return next(((name, at - begin) for name, (begin, size) in self.session.named.items() if begin <= at and end <= begin + size), None)

    def placed(self, results):
        """Of what a forward returns: a tensor, or several in a list or a tuple."""
        kind = type(results).__name__ if isinstance(results, (tuple, list)) else ""
        return kind, [self.place(r) for r in (results if kind else [results])]

    def view(self, name, offset, dtype, shape, stride):
        dtype = getattr(torch, dtype)
        if offset is None:
            return self.session.restored_view(name, dtype, shape, stride)
        address, size = self.session.named[name]
        size = (size - offset) // dtype.itemsize * dtype.itemsize
        return torch.as_tensor(Memory(address + offset, size), device="cuda").view(dtype).as_strided(shape, stride)

    def viewed(self, kind, found):
        tensors = [self.view(*result) for result in found]
        return {"": lambda: tensors[0], "list": lambda: tensors, "tuple": lambda: tuple(tensors)}[kind]()


def form(t):
    return str(t.dtype).removeprefix("torch."), t.shape, t.stride()
