"""Tests of the plug-in's decisions, with stand-ins for torch and libmedusa.so. They need neither."""

import ctypes
import os
import sys
import types
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))

torch = types.ModuleType("torch")
SIZES = {"float32": 4, "float16": 2, "bfloat16": 2, "int32": 4, "int64": 8, "uint8": 1, "float8": 1}
for dtype, size in SIZES.items():
    setattr(torch, dtype, mock.Mock(itemsize=size))
torch.cuda = mock.MagicMock()
torch.cuda.current_stream.return_value.cuda_stream = 1
with mock.patch.dict(sys.modules, {"torch": torch}):
    import medusa_graphs as medusa
    from medusa_graphs import capture, contract, libraries, marks, nccl, session


class Tensor:
    """The attributes of a tensor that a mark reads."""

    def __init__(self, shape, stride, dtype=torch.float32):
        self.shape, self.strides, self.dtype = shape, stride, dtype

    def numel(self):
        count = 1
        for n in self.shape:
            count *= n
        return count

    def stride(self):
        return self.strides

    def element_size(self):
        return self.dtype.itemsize

    def is_contiguous(self):
        return self.strides[-1] == 1

    def data_ptr(self):
        return 4096


class Library:
    """libmedusa.so: answers by function, and the calls."""

    def __init__(self, **answers):
        self.answers, self.calls = answers, []

    def __getattr__(self, name):
        def call(*args):
            self.calls.append(name)
            answer = self.answers.get(name, 0)
            return answer(*args) if callable(answer) else answer

        return call


def opened(run=contract.RESTORE, **answers):
    """A session of a start whose library gives these answers."""
    library = Library(medusa_session_open=run, medusa_session_error=b"a reason", **answers)
    with mock.patch.object(session, "_library", lambda: library), mock.patch.dict(os.environ, {contract.ENV_RUN: "restore"}):
        with mock.patch.object(session.ctypes, "CDLL"):
            s = medusa.Session()
    return s, library


class Marks(unittest.TestCase):
    def test_extent(self):
        self.assertEqual(marks.extent(Tensor((4, 3), (3, 1))), 48)
        self.assertEqual(marks.extent(Tensor((4, 3), (10, 1))), (3 * 10 + 2 + 1) * 4)
        self.assertEqual(marks.extent(Tensor((4, 0), (1, 1))), 0)

    def marked(self, t, role=contract.INPUT, **bounds):
        found = []
        with mock.patch.object(marks, "_call", lambda name, mark: found.append(mark._obj)):
            marks.tensor("name", t, role, **bounds)
        return found[0]

    def test_unknown_dtype_is_bytes(self):
        mark = self.marked(Tensor((4, 3), (3, 1), torch.float8))
        self.assertEqual((mark.dtype, mark.size, mark.lo, mark.hi), (contract.U8, 12, 0, 256))
        mark = self.marked(Tensor((4, 3), (3, 1), torch.float8), lo=1, hi=3)
        self.assertEqual((mark.lo, mark.hi), (1, 3))

    def test_bytes_of_a_kv_cache(self):
        for dtype in torch.float8, torch.uint8:
            mark = self.marked(Tensor((4, 3), (3, 1), dtype), role=contract.KV)
            self.assertEqual((mark.lo, mark.hi), (0, 0x40))
        mark = self.marked(Tensor((4, 3), (3, 1), torch.uint8), role=contract.KV, lo=1, hi=3)
        self.assertEqual((mark.lo, mark.hi), (1, 3))

    def test_unknown_dtype_keeps_rows(self):
        mark = self.marked(Tensor((4, 3), (3, 1), torch.float8))
        self.assertEqual((mark.ndim, list(mark.shape[:3])), (3, [4, 3, 1]))
        mark = self.marked(Tensor((1,) * 8, (1,) * 8, torch.float8))
        self.assertEqual((mark.ndim, mark.shape[0]), (1, 1))

    def test_addresses(self):
        mark = self.marked(Tensor((3,), (1,), torch.int64), addresses=True)
        self.assertEqual((mark.dtype, mark.ndim, mark.shape[0], mark.lo, mark.hi), (contract.ADDRESS, 1, mark.size // 8, 0, 0))

    def test_shape_of_gaps(self):
        mark = self.marked(Tensor((4, 3), (10, 2)))
        self.assertEqual((mark.ndim, mark.shape[0]), (1, 3 * 10 + 2 * 2 + 1))
        mark = self.marked(Tensor((4, 3), (3, 1)))
        self.assertEqual((mark.ndim, list(mark.shape[:2])), (2, [4, 3]))

    def test_blocks(self):
        segments = [
            {"device": 0, "address": 100, "blocks": [{"size": 10, "state": "active_allocated"}, {"size": 20, "state": "inactive"}]},
            {"device": 1, "address": 900, "blocks": [{"size": 30, "state": "active_pending_free"}]},
        ]
        for device, want in ((None, [(100, 10, 1), (110, 20, 0), (900, 30, 1)]), (1, [(900, 30, 1)])):
            found = []
            with mock.patch.object(marks, "_call", lambda name, *args, to=found: to.append(args)):
                with mock.patch.dict(marks._FUNCTIONS, {"medusa_mark_block": print}):
                    torch.cuda.memory_snapshot = lambda: segments
                    self.assertEqual(marks.blocks(device), len(want))
            self.assertEqual(found, want)


class Workspaces(unittest.TestCase):
    def test_what_products_leave(self):
        """The blocks that torch keeps once the products' own are gone, of one stream after the other: of each, the smaller one first."""
        kept = [{"size": 10, "state": "active_allocated"}, {"size": 20, "state": "inactive"}, {"size": 30, "state": "inactive"}]
        torch.cuda.memory_snapshot = lambda: [{"address": 100, "blocks": kept}]

        def multiply():
            if kept[1]["state"] == "active_allocated":
                kept[0:1] = [{"size": 3, "state": "inactive"}, {"size": 7, "state": "active_allocated"}]
                return
            kept[2:] = [{"size": 8, "state": "active_allocated"}, {"size": 22, "state": "inactive"}]
            kept[1]["state"] = "active_allocated"

        named, session, entered = [], mock.Mock(), []
        session.memory = lambda name, *args, **bounds: named.append((name, *args, bounds))
        torch.cuda.current_stream.return_value = current = mock.MagicMock(cuda_stream=1)
        torch.cuda.stream = lambda stream: entered.append(stream) or mock.MagicMock()
        with mock.patch.object(libraries, "multiply", multiply), mock.patch.object(torch, "inference_mode", mock.MagicMock(), create=True):
            libraries.workspaces(session, ["second"])
        self.assertEqual(entered, [current, "second"])
        want = [("library workspace 0", 130, 8), ("library workspace 1", 110, 20), ("library workspace 2", 103, 7)]
        self.assertEqual(named, [(*w, contract.INPUT, {"lo": 0, "hi": 1}) for w in want])


class Sessions(unittest.TestCase):
    def test_absent(self):
        with mock.patch.dict(os.environ, clear=True):
            s = medusa.Session()
        self.assertEqual((s.run, s.kv_bytes(), s.triggers(), s.graphs(), s.kernels()), (contract.NONE, None, [], None, []))
        s.close()

    def test_errors(self):
        s, _ = opened(medusa_session_refuse=-3)
        with self.assertRaisesRegex(medusa.MedusaError, "a reason"):
            s.refuse("x")
        s, _ = opened(medusa_session_refuse=contract.FALLBACK)
        try:
            s.refuse("x")
        except medusa.MedusaError as e:
            self.fail(f"a fallback is no error: {e}")

    def test_restores_while_the_library_says_so(self):
        for run, answer, want in ((contract.RESTORE, 1, True), (contract.RESTORE, 0, False), (contract.RECORD, 1, False)):
            s, _ = opened(run, medusa_session_restoring=answer)
            self.assertEqual(s.restoring, want)

    def test_nothing_is_asked_of_a_native_start(self):
        s, library = opened(medusa_session_restoring=0)
        self.assertEqual((s.triggers(), s.graphs()), ([], None))
        self.assertNotIn("medusa_session_triggers", library.calls)
        self.assertNotIn("medusa_session_graphs", library.calls)

    def test_triggers_of_a_check(self):
        def answer(batches, capacity):
            if batches is not None:
                batches[0] = 8
            return 1

        for run, want in ((contract.CHECK, [8]), (contract.RECORD, [])):
            s, _ = opened(run, medusa_session_restoring=0, medusa_session_triggers=answer)
            self.assertEqual(s.triggers(), want)

    def test_size_of_the_cache(self):
        def answer(value):
            value._obj.value = 77
            return given

        for given, want in ((1, 77), (0, None)):
            s, _ = opened(medusa_session_kv_bytes=answer)
            self.assertEqual(s.kv_bytes(), want)

    def test_what_a_start_does_with_its_weights(self):
        for run, answer in ((contract.RECORD, contract.WEIGHTS_OTHER), (contract.RESTORE, contract.WEIGHTS_COUNT)):
            self.assertEqual(opened(run, medusa_session_weights=answer)[0].weights, answer)
        with mock.patch.dict(os.environ, clear=True):
            self.assertEqual(medusa.Session().weights, contract.WEIGHTS_ANY)

    def test_block_map_once(self):
        s, order = opened()[0], []
        torch.cuda.empty_cache = lambda: order.append("given back")
        with mock.patch.object(marks, "blocks", lambda: order.append("blocks")), mock.patch.object(marks, "phase", order.append):
            for name in ("weights", "warmup", "capture"):
                s.phase(name)
        self.assertEqual(order, ["weights", "given back", "blocks", "warmup", "capture"])

    def test_named_tensors_are_held(self):
        s, t = opened()[0], Tensor((4, 3), (3, 1))
        with mock.patch.object(marks, "tensor"):
            s.place("inside", t, contract.OUTPUT)
            self.assertEqual(s.held, [])
            s.tensor("outside", t, contract.INPUT)
        self.assertEqual((s.held, s.named), ([t], {"inside": (4096, 48), "outside": (4096, 48)}))

    def test_failed_trigger(self):
        def run():
            raise ValueError("of the layer")

        def answer(callback, _):
            self.assertEqual(callback(None), 1)
            return code

        for code, raised in ((0, True), (contract.FALLBACK, False)):
            s, got = opened(medusa_session_trigger=answer)[0], False
            try:
                s.trigger(run)
            except ValueError:
                got = True
            self.assertEqual(got, raised)

    def restored(self, **answers):
        def graphs(found, room):
            if found is not None:
                found[0].batch, found[0].exec, found[0].label = 8, 99, b"decode"
            return 1

        s, library = opened(medusa_session_restoring=1, medusa_session_graphs=graphs, **answers)
        return s, s.graphs()[0], library

    def test_graphs(self):
        s, g, _ = self.restored()
        self.assertEqual((g.index, g.batch, g.label, g.handle, s.executables), (0, 8, "decode", 99, {"decode": 99}))

    def test_stale_graphs_are_not_launched(self):
        s, g, _ = self.restored(medusa_session_usable=0)
        s.launch = mock.Mock(return_value=0)
        with self.assertRaises(medusa.GraphInvalid):
            g.replay()
        s.launch.assert_not_called()

    def test_failed_launch(self):
        s, g, library = self.restored(medusa_session_usable=1)
        s.launch = mock.Mock(return_value=0)
        g.replay()
        self.assertNotIn("medusa_session_failed", library.calls)
        s.launch = mock.Mock(return_value=700)
        with self.assertRaisesRegex(medusa.MedusaError, "700"):
            g.replay()
        self.assertIn("medusa_session_failed", library.calls)

    def test_refused_start_has_no_graphs(self):
        s, _, _ = self.restored()
        s.refuse("other graphs")
        self.assertEqual(s.executables, {})

    def test_memory_is_looked_up_once(self):
        def answer(_, address):
            address._obj.value = 8192
            return 1

        s, library = opened(medusa_session_tensor=answer)
        torch.as_tensor = mock.MagicMock()
        for _ in range(2):
            s.restored_view("name", torch.float16, (4, 3), (10, 1))
        self.assertEqual(library.calls.count("medusa_session_tensor"), 1)
        interface = torch.as_tensor.call_args.args[0].__cuda_array_interface__
        self.assertEqual((interface["shape"], interface["data"][0]), (((3 * 10 + 2 + 1) * 2,), 8192))
        s, _ = opened(medusa_session_tensor=0)
        with self.assertRaisesRegex(medusa.MedusaError, "none so"):
            s.restored_view("other", torch.float16, (4, 3), (10, 1))

    def test_self_test(self):
        served = []

        def answer(callback, _):
            room = ctypes.create_string_buffer(4)
            served.append((callback(None, room, 4), room.raw))
            return 0

        s, _ = opened(medusa_session_ready=answer)
        with mock.patch.object(marks, "phase"):
            s.ready(lambda: b"longer")
        self.assertEqual(served, [(6, b"long")])


class Made:
    """Of a communicator: the calls that were made."""

    def __init__(self):
        self.made = []

    def __getattr__(self, name):
        return lambda *args: self.made.append((name, *args))


class Collectives(unittest.TestCase):
    """A call, as a capture takes it, is made anew with the same arguments."""

    def setUp(self):
        self.session, self.library, self.marked = mock.Mock(alone=False), Made(), []
        torch.cuda.is_current_stream_capturing = mock.Mock(return_value=True)
        self.communicators = medusa.Communicators(self.session)
        self.communicators.add(Made(), "first", 2)
        self.calls = self.communicators.add(self.library, "second", 4)

        def collective(call, stream):
            self.marked.append((call, stream))
            return mock.MagicMock()

        patch = mock.patch.object(marks, "collective", collective)
        patch.start()
        self.addCleanup(patch.stop)

    def test_calls_are_made_anew(self):
        self.calls.ncclAllReduce(ctypes.c_void_p(64), 128, 10, 9, 3, "second", ctypes.c_void_p(7))
        self.calls.ncclAllGather(64, 128, 10, 7, "second", 7)
        self.calls.ncclReduceScatter(64, 128, 10, 7, 1, "second", 7)
        self.calls.ncclBroadcast(64, 128, 10, 7, 3, "second", 7)
        sizes = [(call.send, call.send_bytes, call.recv, call.recv_bytes, stream) for call, stream in self.marked]
        self.assertEqual(sizes, [(64, 20, 128, 20, 7), (64, 40, 128, 160, 7), (64, 160, 128, 40, 7), (64, 40, 128, 40, 7)])
        made, self.library.made = self.library.made, []
        for call, _ in self.marked:
            self.communicators.make(call, 7)
        made[0] = ("ncclAllReduce", 64, 128, 10, 9, 3, "second", 7)
        self.assertEqual(self.library.made, made)

    def test_rank_that_is_alone(self):
        self.session.alone = True
        calls = self.communicators.add(self.library, "third", 4)
        calls.ncclAllGather(64, 128, 10, 7, None, ctypes.c_void_p(7))
        call = self.marked[0][0]
        self.communicators.make(call, 9)
        self.assertEqual(self.session.stand_in.call_args_list, [mock.call(call, 7), mock.call(call, 9)])
        calls.ncclSend(64, 10, 7, 1, None, 7)
        self.assertEqual([call.args for call in self.session.refuse.call_args_list], [(f"ncclSend of a rank that is alone (supported: {', '.join(nccl.HOLES)})",)])
        self.assertEqual(self.library.made, [])

    def test_session_that_is_alone(self):
        s, library = opened(medusa_session_alone=1, medusa_session_stand_in=0)
        self.assertTrue(s.alone)
        s.stand_in(contract.Collective(5), 9)
        self.assertFalse(opened(medusa_session_alone=0)[0].alone)
        self.assertFalse(medusa.Session().alone)

    def test_broadcast_to_a_rank_that_sends_nothing(self):
        self.calls.ncclBroadcast(ctypes.c_void_p(), 128, 10, 7, 3, "second", 7)
        self.assertEqual((self.marked[0][0].send, self.marked[0][0].recv), (128, 128))

    def test_unknown_call(self):
        with self.assertRaisesRegex(ValueError, "kind 99"):
            self.communicators.make(contract.Collective(99), 7)

    def test_calls_that_are_no_hole(self):
        self.calls.ncclSend(64, 10, 7, 1, "second", 7)
        self.session.refuse.assert_called_once_with("ncclSend in a graph")
        torch.cuda.is_current_stream_capturing.return_value = False
        self.calls.ncclGroupStart()
        self.calls.ncclGetVersion()
        self.session.refuse.assert_called_once()
        self.assertEqual([name for name, *_ in self.library.made], ["ncclSend", "ncclGroupStart", "ncclGetVersion"])

    def test_failed_call(self):
        def answer(callback, _):
            self.code = callback(None, ctypes.byref(contract.Collective(5)), 9)
            return 0

        seen = []
        s, _ = opened(medusa_session_collectives=answer)
        s.collectives(lambda call, stream: seen.append((call.operation, stream)))
        self.assertEqual((self.code, seen), (0, [(5, 9)]))
        s.collectives(lambda call, stream: seen[99])
        self.assertEqual(self.code, 1)

    def test_step_that_connects(self):
        codes, taken = [], []
        s, _ = opened(medusa_session_connect=lambda callback, _: codes.append(callback(None)) or 0)
        s.connect(lambda: taken.append(1))
        s.connect(lambda: taken[9])
        self.assertEqual((codes, taken), ([0, 1], [1]))


class Captures(unittest.TestCase):
    def test_phase_begins_once(self):
        s = mock.Mock(captured=[])
        with mock.patch.object(marks, "graph"), mock.patch.object(marks, "blocks"), capture.Capture(s) as c:
            for batch in (2, 1):
                c.graph(f"decode-{batch}", batch, lambda: None)
        self.assertEqual([call.args[0] for call in s.phase.call_args_list], ["warmup", "capture"])
        self.assertEqual(s.captured, ["decode-2", "decode-1"])


if __name__ == "__main__":
    unittest.main()
