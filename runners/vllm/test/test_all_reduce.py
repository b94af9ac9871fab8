"""Tests of vLLM's own all-reduce in graphs, with stand-ins for torch and vLLM. They need neither."""

import contextlib
import importlib
import os
import sys
import types
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))


class Dtype:
    def __init__(self, itemsize):
        self.itemsize = itemsize


class Tensor:
    def __init__(self, address, count, dtype):
        self.address, self.count, self.dtype = address, count, dtype

    def data_ptr(self):
        return self.address

    def numel(self):
        return self.count


class Bytes:
    def __init__(self, memory, device):
        self.facts, self.device = memory.__cuda_array_interface__, device

    def view(self, dtype):
        return Tensor(self.facts["data"][0], self.facts["shape"][0] // dtype.itemsize, dtype)


HALF, FLOAT, BRAIN = Dtype(2), Dtype(4), Dtype(2)


def stand_ins(test):
    @contextlib.contextmanager
    def on(stream):
        test.streams.append(stream)
        yield

    @contextlib.contextmanager
    def communicator():
        test.own = True
        yield
        test.own = False

    cuda = types.SimpleNamespace(stream=on, ExternalStream=lambda stream, device: (stream, device), is_current_stream_capturing=lambda: test.captures)
    torch = types.SimpleNamespace(
        cuda=cuda, float16=HALF, float32=FLOAT, bfloat16=BRAIN, as_tensor=lambda memory, device: Bytes(memory, device), empty_like=lambda t: Tensor(0xE0, t.count, t.dtype)
    )
    utils = types.SimpleNamespace(current_stream=lambda: types.SimpleNamespace(cuda_stream=5))
    return {"torch": torch, "vllm": mock.Mock(__path__=[]), "vllm.utils": mock.Mock(__path__=[]), "vllm.utils.torch_utils": utils, "medusa_graphs": types.SimpleNamespace(communicator=communicator)}


class AllReduce:
    """As vLLM's custom all-reduce, or its symmetric memory for values of up to 8 bytes."""

    disabled, device = False, "cuda:1"

    def __init__(self, test):
        self.test, self.made, self.registered = test, [], []

    def should_use_symm_mem(self, inp):
        return inp.count * inp.dtype.itemsize <= 8

    def all_reduce(self, inp, *, out=None, registered=False):
        self.made.append((inp.address, out and out.address, inp.count, inp.dtype, registered))
        return out

    def register_graph_buffers(self):
        self.registered.append(self.test.own)

    def custom_all_gather(self, inp):
        return inp


class Marked:
    def __init__(self, library):
        self.library, self.calls = library, []

    def ncclAllReduce(self, *call):
        self.calls.append(call)
        self.library.ncclAllReduce(*call)


class OwnAllReduce(unittest.TestCase):
    def setUp(self):
        self.streams, self.own, self.captures = [], False, True
        with mock.patch.dict(sys.modules, stand_ins(self)):
            sys.modules.pop("medusa_vllm.all_reduce", None)
            module = importlib.import_module("medusa_vllm.all_reduce")
        self.module, self.all_reduce = module, AllReduce(self)
        self.library, self.session = module.Custom(self.all_reduce), mock.Mock()
        self.marked = Marked(self.library)

    def test_captured_call_copies_its_input(self):
        self.library.mark(self.marked, self.session)
        out = self.all_reduce.all_reduce(Tensor(0xA0, 6, BRAIN), registered=True)
        self.assertEqual(self.marked.calls, [(0xA0, 0xE0, 6, 9, 0, None, 5)])
        self.assertEqual((out.address, self.all_reduce.made), (0xE0, [(0xA0, 0xE0, 6, BRAIN, False)]))
        self.assertEqual(self.streams, [(5, "cuda:1")])

    def test_other_calls_stay(self):
        self.library.mark(self.marked, self.session)
        self.captures = False
        self.all_reduce.all_reduce(Tensor(0xA0, 6, HALF), out=Tensor(0xB0, 6, HALF))
        self.assertEqual((self.marked.calls, self.all_reduce.made), ([], [(0xA0, 0xB0, 6, HALF, False)]))
        self.all_reduce.custom_all_gather(1)
        self.session.refuse.assert_not_called()

    def test_buffers_are_the_communicators(self):
        self.library.mark(self.marked, self.session)
        self.all_reduce.register_graph_buffers()
        self.assertEqual(self.all_reduce.registered, [True])

    def test_other_calls_in_a_graph(self):
        self.library.mark(self.marked, self.session)
        self.all_reduce.custom_all_gather(1)
        self.session.refuse.assert_called_once_with("custom_all_gather in a graph")
        self.assertFalse(hasattr(self.all_reduce, "custom_reduce_scatter"))

    def test_absent(self):
        for absent in (None, types.SimpleNamespace(disabled=True, all_reduce=len, device="cuda:1")):
            for kind in (self.module.Custom, self.module.Symmetric):
                library = kind(absent)
                self.assertFalse(library)
                with self.assertRaisesRegex(RuntimeError, f"{kind.name} is off in this start"):
                    library.ncclAllReduce(1, 2, 3, 7, 0, None, 5)

    def test_refused_call(self):
        self.all_reduce.all_reduce = lambda inp, *, out=None: None
        with self.assertRaisesRegex(RuntimeError, "symmetric memory does not take 3 values of type 7"):
            self.module.Symmetric(self.all_reduce).ncclAllReduce(1, 2, 3, 7, 0, None, 5)

    def test_symmetric_memory(self):
        library = self.module.Symmetric(self.all_reduce)
        marked = Marked(library)
        library.mark(marked, self.session)
        small, large = Tensor(0xA0, 4, BRAIN), Tensor(0xA0, 5, BRAIN)
        self.assertEqual(self.all_reduce.all_reduce(small).address, 0xE0)
        self.assertEqual(marked.calls, [(0xA0, 0xE0, 4, 9, 0, None, 5)])
        self.assertIsNone(self.all_reduce.all_reduce(large))
        self.captures = False
        self.all_reduce.all_reduce(small, out=Tensor(0xB0, 4, BRAIN))
        self.assertEqual(len(marked.calls), 1)
        self.assertEqual(self.all_reduce.made, [(0xA0, 0xE0, 4, BRAIN, False), (0xA0, None, 5, BRAIN, False), (0xA0, 0xB0, 4, BRAIN, False)])


if __name__ == "__main__":
    unittest.main()
