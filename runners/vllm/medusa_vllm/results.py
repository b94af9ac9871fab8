"""What a graph that is part of a step leaves for the rest of the step.

In: tensors in memory that only graphs have allocated, when they are captured. Out: names of that memory, with types, shapes and strides for a note in the artifact; in a restored start,
tensors there. Fails: what verification could not fill with numbers is refused.

Wherever a result lies, that memory gets a name, and each graph is said to leave a result there. Nothing in a restored start would tell the shapes.
"""

import torch

import medusa
from medusa import marks


class Results:
    def __init__(self, session, memory=None):
        """memory: names by address and bytes, which an engine's models share."""
        self.session = session
        self.memory = {} if memory is None else memory

    def place(self, t):
        """Names the memory of a result, and returns with it the tensor that it is a view of."""
        if not isinstance(t, torch.Tensor) or not t.is_floating_point():
            self.session.refuse(f"a part of the model that leaves {getattr(t, 'dtype', type(t).__name__)}")
            return None
        at = t.data_ptr(), marks.extent(t)
        if at not in self.memory:
            self.memory[at] = f"result {len(self.memory)}"
            marks.tensor(self.memory[at], t, medusa.OUTPUT)
        marks.result(self.memory[at])
        return self.memory[at], *form(t)

    def placed(self, results):
        """Of what a forward returns: a tensor, or several in a list or a tuple."""
        kind = type(results).__name__ if isinstance(results, (tuple, list)) else ""
        return kind, [self.place(r) for r in (results if kind else [results])]

    def view(self, memory, dtype, shape, stride):
        return self.session.restored_view(memory, getattr(torch, dtype), shape, stride)

    def viewed(self, kind, found):
        tensors = [self.view(*result) for result in found]
        return {"": lambda: tensors[0], "list": lambda: tensors, "tuple": lambda: tuple(tensors)}[kind]()


def form(t):
    return str(t.dtype).removeprefix("torch."), t.shape, t.stride()
