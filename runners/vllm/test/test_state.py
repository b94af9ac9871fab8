"""Tests of the comparison of Python state, with stand-ins for vLLM's objects. They need neither vLLM nor torch."""

import dataclasses
import unittest

import state


class Tensor:
    dtype = "float32"

    def __init__(self, at, *shape):
        self.at, self.shape = at, shape

    def data_ptr(self):
        return self.at


@dataclasses.dataclass(frozen=True)
class Desc:
    tokens: int


class Worker:
    """Of vLLM, as far as its module's name goes."""

    __module__ = "vllm.worker"

    def __init__(self):
        self.count, self.graphs, self.again = 1, {}, [self]
        self.buffer = Tensor(0x10, 4)
        self.foreign = unittest.TestCase()
        self.session = {"restored": False}


class State(unittest.TestCase):
    def changed(self, change, **kwargs):
        worker = Worker()
        before = state.of(worker, **kwargs)
        change(worker)
        return state.changes(before, state.of(worker, **kwargs))

    def test_nothing_changes(self):
        self.assertEqual(self.changed(lambda w: None), {})
        self.assertEqual(self.changed(lambda w: setattr(w.foreign, "x", 1)), {})

    def test_scalars_and_keys(self):
        self.assertEqual(self.changed(lambda w: setattr(w, "count", 2)), {"worker.count": ["1", "2"]})
        self.assertEqual(self.changed(lambda w: setattr(w, "late", True)), {"worker.late": [None, "True"]})
        self.assertEqual(self.changed(lambda w: w.again.append(3)), {"worker.again": ["list of 1", "list of 2"], "worker.again[1]": [None, "3"]})
        changed = self.changed(lambda w: w.graphs.update({Desc(8): object()}))
        self.assertEqual(changed["worker.graphs"], ["dict of []", "dict of ['Desc(tokens=8)']"])
        self.assertEqual(changed["worker.graphs[Desc(tokens=8)]"], [None, "builtins.object"])

    def test_tensors(self):
        same = "tensor float32 (4,)"
        self.assertEqual(self.changed(lambda w: setattr(w, "buffer", Tensor(0x20, 4))), {"worker.buffer": [same, "another " + same]})
        self.assertEqual(self.changed(lambda w: setattr(w, "buffer", Tensor(0x10, 2))), {"worker.buffer": [same, "tensor float32 (2,)"]})
        self.assertEqual(self.changed(lambda w: setattr(w, "buffer", Tensor(0x10, 4))), {})

    def test_what_is_left_out(self):
        self.assertEqual(self.changed(lambda w: w.session.update(restored=True), without=("worker.session",)), {})

    def test_lost(self):
        native = {"worker.a": ["1", "2"], "worker.b": [None, "3"], "worker.layers[0].c": ["4", "5"]}
        restored = {"worker.a": ["1", "2"], "worker.d": ["6", "7"]}
        self.assertEqual(state.lost(native, native, []), {})
        self.assertEqual(set(state.lost(native, restored, [])), {"worker.b", "worker.layers[0].c", "worker.d"})
        self.assertEqual(state.lost(native, restored, ["worker.b", "worker.layers[*].c"]), {"worker.d": (None, ["6", "7"])})


if __name__ == "__main__":
    unittest.main()
