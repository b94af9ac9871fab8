"""The results that a graph of a part of a step leaves for the rest of the step.

In: tensors, most in memory that only graphs have allocated, and other values, at the captures. Out: their places, types, shapes and strides for a note in the artifact, because
a restored start makes no captures that would tell them; in a restored start, the same tensors and values. Fails: results that verification could not fill with numbers are
refused.
"""

import torch
from vllm.utils.torch_utils import LayerName

import medusa_graphs as medusa
from medusa_graphs import marks
from medusa_graphs.ranges import Memory

TENSOR, EMPTY, LAYER, VALUE = "tensor", "empty", "layer", "value"  # kinds of values between graphs


class Results:
    def __init__(self, session, memory=None):
        """memory: names by address and bytes, which an engine's models share."""
        self.session = session
        self.memory = {} if memory is None else memory

    def said(self, value):
        """A value between two graphs, in a form by which another process finds it."""
        if isinstance(value, torch.Tensor):
            return (TENSOR, *(self.place(value) or ())) if value.numel() else (EMPTY, *form(value))
        if isinstance(value, LayerName):
            return LAYER, value.value
        if value is not None and not isinstance(value, (bool, int, float, str)):
            self.session.refuse(f"a {type(value).__name__} between the graphs of a step")
        return VALUE, value

    def made(self, said):
        kind, *of = said
        return {TENSOR: self.view, EMPTY: empty, LAYER: LayerName, VALUE: lambda value: value}[kind](*of)

    def place(self, t):
        """The place of a tensor, and its form. If the tensor is the engine's own, the place is a named tensor and an offset in it. Else it is memory of graphs, which
        gets a name."""
        # mutant: results that are the engine's own
        own = self.own(t)
        if own:
            return *own, *form(t)
        if not t.is_floating_point():
            self.session.refuse(f"a part of the model that leaves {t.dtype}")
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

    def returned(self, results):
        """The results of a forward in that form: a tensor, or several in a list or a tuple."""
        kind = type(results).__name__ if isinstance(results, (tuple, list)) else ""
        return kind, [self.said(r) for r in (results if kind else [results])]

    def view(self, name, offset, dtype, shape, stride):
        dtype = getattr(torch, dtype)
        if offset is None:
            return self.session.restored_view(name, dtype, shape, stride)
        address, size = self.session.named[name]
        size = (size - offset) // dtype.itemsize * dtype.itemsize
        return torch.as_tensor(Memory(address + offset, size), device="cuda").view(dtype).as_strided(shape, stride)

    def again(self, kind, said):
        """A forward's results, made from the form that returned gave."""
        results = [self.made(r) for r in said]
        return {"": lambda: results[0], "list": lambda: results, "tuple": lambda: tuple(results)}[kind]()


def form(t):
    return str(t.dtype).removeprefix("torch."), t.shape, t.stride()


def empty(dtype, shape, stride):
    return torch.empty_strided(shape, stride, dtype=getattr(torch, dtype), device="cuda")
