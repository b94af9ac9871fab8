"""Tests of breakable graphs with stand-ins for torch and vLLM: a forward that is recorded in one process, and replayed in another."""

import functools
import os
import sys
import types
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

POOL = (0, 1)
GRAPHS = 0x5000  # memory of graphs, in the recording process


class Tensor:
    """Memory of floats."""

    def __init__(self, at, count=4, floats=True):
        self.at, self.count, self.floats = at, count, floats
        self.dtype, self.shape = "torch.float32" if floats else "torch.int32", [count]

    def data_ptr(self):
        return self.at

    def numel(self):
        return self.count

    def stride(self):
        return [1]

    def is_floating_point(self):
        return self.floats

    def view(self, dtype):
        return self

    def as_strided(self, shape, stride):
        return Tensor(self.at, *shape)

    def __getitem__(self, part):
        return self


class Module:
    def __init__(self, **modules):
        self.modules = modules

    def named_modules(self):
        return [("", self), *self.modules.items()]


class LayerName:
    def __init__(self, value):
        self.value = value


class Capture:
    """As vLLM's BreakableCUDAGraphCapture, with a word for each graph."""

    now = None

    @classmethod
    def current(cls):
        return cls.now

    def __init__(self):
        self.segments = []

    def add_eager(self, call):
        self.segments += ["graph", call]
        return call()


def breaks(function):
    """As vLLM's eager_break_during_capture."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        if Capture.now is None:
            return function(*args, **kwargs)
        fn, weak_args, weak_kwargs = function, args, kwargs
        return Capture.now.add_eager(lambda: fn(*weak_args, **weak_kwargs))

    return wrapper


called = []


@breaks
def attention(query, output, layer, **more):
    called.append((query.at, output.at, getattr(layer, "value", layer), {k: getattr(v, "at", v) for k, v in more.items()}))


def unbroken():
    pass


class Wrapper:
    """As vLLM's BreakableCUDAGraphWrapper."""

    def __init__(self, runnable, model):
        self.runnable, self.model, self.entries, self.graph_pool, self.is_debugging_mode = runnable, model, {}, POOL, True

    def unwrap(self):
        return self.model

    def _capture(self, entry, args, kwargs):
        Capture.now = Capture()
        try:
            return self.runnable(*args, **kwargs)
        finally:
            Capture.now = None


class Session:
    def __init__(self, named, notes=None, memory=()):
        self.named, self.notes, self.memory = named, notes or {}, dict(memory)
        self.captured, self.refused = [], []

    def note(self, name, value):
        self.notes[name] = value

    def noted(self, name):
        return self.notes[name]

    def restored_view(self, name, dtype, shape, stride):
        return Tensor(self.memory[name], *shape)

    def refuse(self, reason):
        self.refused.append(reason)


def stand_ins(marked):
    def module(name, **attributes):
        m = types.ModuleType(name)
        vars(m).update(attributes)
        return m

    snapshot = [{"address": GRAPHS, "total_size": 0x1000, "segment_pool_id": POOL}, {"address": 0x9000, "total_size": 0x1000, "segment_pool_id": (0, 0)}]
    torch = module(
        "torch", Tensor=Tensor, nn=types.SimpleNamespace(Module=Module), float32=types.SimpleNamespace(itemsize=4), cuda=types.SimpleNamespace(memory_snapshot=lambda: snapshot),
        as_tensor=lambda memory, device: Tensor(memory.address, memory.size), empty_strided=lambda shape, stride, dtype, device: Tensor(0, 0),
    )  # fmt: skip
    marks = module(
        "medusa_graphs.marks", graph=lambda label, tokens: marked.append(label), extent=lambda t: 4 * t.numel(), tensor=lambda *args: None, result=lambda name: marked.append(name)
    )
    modules = [
        torch, marks, module("medusa_graphs", marks=marks, OUTPUT=3, __path__=[]),
        module("medusa_graphs.ranges", Memory=lambda address, size: types.SimpleNamespace(address=address, size=size)),
        module("vllm", __path__=[]), module("vllm.compilation", __path__=[]), module("vllm.utils", __path__=[]), module("vllm.config", __path__=[]),
        module("vllm.compilation.breakable_cudagraph", BreakableCUDAGraphCapture=Capture, BreakableCUDAGraphWrapper=Wrapper, eager_break_during_capture=breaks),
        module("vllm.compilation.cuda_graph", CUDAGraphWrapper=type("CUDAGraphWrapper", (), {})),
        module("vllm.config.compilation", CUDAGraphMode=types.SimpleNamespace(PIECEWISE=1)),
        module("vllm.utils.torch_utils", LayerName=LayerName), module("medusa_vllm.adapters"),
    ]  # fmt: skip
    return {m.__name__: m for m in modules}


class Batch(types.SimpleNamespace):
    def __hash__(self):
        return hash(self.num_tokens)


class Breakable(unittest.TestCase):
    def setUp(self):
        self.marked = []
        patch = mock.patch.dict(sys.modules, stand_ins(self.marked))
        patch.start()
        self.addCleanup(patch.stop)
        for name in "breakable", "results":
            self.addCleanup(sys.modules.pop, "medusa_vllm." + name, None)
        from medusa_vllm import breakable

        for name in "told", "segment":
            label = mock.patch.object(breakable, name, {"told": lambda b: str(b.num_tokens), "segment": lambda i, b, part: f"{part}{i} of {b.num_tokens}"}[name])
            label.start()
            self.addCleanup(label.stop)
        self.breakable, self.batch = breakable.Breakable, Batch(num_tokens=2)
        called.clear()

    def record(self, forward, **named):
        session, self.inner = Session(named), Module()
        wrapper = Wrapper(forward, Module(inner=self.inner))
        b = self.breakable(session, [self.batch], wrapper)
        with b.recorded():
            wrapper._capture(types.SimpleNamespace(batch_descriptor=self.batch), (), {})
        self.assertNotIn("_capture", vars(wrapper))
        return session, b

    def forward(self):
        attention(Tensor(GRAPHS), Tensor(GRAPHS + 16), LayerName("first"), scale=Tensor(0x104, 2), none=None, empty=Tensor(0, 0), number=3)
        attention(Tensor(GRAPHS + 32), Tensor(GRAPHS + 16), "second", module=self.inner)  # of a class whose method breaks graphs
        return Tensor(GRAPHS + 48)

    def test_a_forward_in_another_process(self):
        session, b = self.record(self.forward, scales=(0x100, 16))
        segments = ["0 of 2", "1 of 2", "2 of 2"]
        self.assertEqual((session.captured, list(b.keys), session.refused), (segments, segments, []))
        # A result belongs to the graph that is captured when it is marked.
        self.assertEqual(self.marked, ["0 of 2", "result 0", "result 1", "1 of 2", "result 2", "result 1", "2 of 2", "result 3"])
        called.clear()

        places = {f"result {i}": 0x70 + 0x10 * i for i in range(4)}
        replayed = Session({"scales": (0x200, 16)}, session.notes, places)
        inner = Module()
        wrapper = Wrapper(None, Module(inner=inner))
        restored = self.breakable(replayed, [self.batch], wrapper)
        graphs = {label: types.SimpleNamespace(replay=lambda label=label: called.append(label)) for label in restored.keys}
        restored.install(graphs)
        entry = wrapper.entries[self.batch]
        entry.capture.replay()
        first = (0x70, 0x80, "first", {"scale": 0x204, "none": None, "empty": 0, "number": 3})
        self.assertEqual(called, ["0 of 2", first, "1 of 2", (0x90, 0x80, "second", {"module": inner}), "2 of 2"])
        self.assertEqual((entry.output.at, wrapper.is_debugging_mode), (0xA0, False))

        replayed.memory["result 0"] = 0x1070
        called.clear()
        restored.rise()
        entry.capture.replay()
        self.assertEqual(called[1][0], 0x1070)

    def test_calls_that_another_process_cannot_make(self):
        out = Tensor(GRAPHS)
        for reason, arguments in {
            "a list between": ([], out, ""),
            "tensors of an unknown origin (1 of 2)": (Tensor(0x9000), out, ""),
            "leaves torch.int32": (Tensor(GRAPHS + 16, floats=False), out, ""),
        }.items():
            session, _ = self.record(lambda arguments=arguments: Capture.now.add_eager(call(breaks_nothing, arguments)) or out)
            self.assertIn(reason, " ".join(session.refused))

    def test_functions_that_break_no_graphs(self):
        out = Tensor(GRAPHS)
        session, _ = self.record(lambda: Capture.now.add_eager(call(unbroken, ())) or out)
        self.assertIn("unbroken: no function of that name breaks graphs", session.refused[0])
        notes = {"vllm.breaks": b'{"2": [[[["os", "system"], [["value", "true"]], {}]], ["", []]]}'}
        restored = self.breakable(Session({}, notes), [self.batch], Wrapper(None, Module()))
        with self.assertRaisesRegex(LookupError, "os.system: no function"):
            restored.install(dict.fromkeys(restored.keys, types.SimpleNamespace(replay=None)))


def call(fn, weak_args):
    """As vLLM's between two segments, of a function without effect."""
    weak_kwargs = {}
    return lambda: (fn, weak_args, weak_kwargs) and None


def breaks_nothing(*args):
    pass


breaks_nothing = breaks(breaks_nothing)

if __name__ == "__main__":
    unittest.main()
