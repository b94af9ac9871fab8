"""Tests of the worker's sleep, with stand-ins for torch, vLLM and the session."""

import ast
import contextlib
import os
import sys
import types
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

device = bytearray(64)  # all memory


class Piece:
    """As much of a tensor as the plug-in relies on."""

    def __init__(self, address, size):
        self.address, self.size = address, size

    def data_ptr(self):
        return self.address

    def untyped_storage(self):
        return types.SimpleNamespace(data_ptr=self.data_ptr, nbytes=lambda: self.size)

    def cpu(self):
        return bytes(device[self.address : self.address + self.size])

    def copy_(self, value):
        device[self.address : self.address + self.size] = value


class Allocator:
    def __init__(self, *allocations):
        self.pointer_to_data = {
            address: types.SimpleNamespace(handle=(0, size, address, 0), tag=tag, is_asleep=False) for address, size, tag in allocations
        }


class CuMemBackend:
    """vLLM's, which discards everything that it does not keep."""

    def suspend(self, level=1):
        for address, data in allocator.pointer_to_data.items():
            data.is_asleep = True
            if level != 1 or data.tag != "weights":
                device[address : address + data.handle[1]] = bytes(data.handle[1])

    def resume(self, tags=None):
        for data in allocator.pointer_to_data.values():
            if tags is None or data.tag in tags:
                data.is_asleep = False


class Stock:
    """vLLM's worker."""

    def sleep(self, level=1):
        self.told.append(f"sleep {level}")
        self._sleep_saved_buffers = {"buffer": 0}

    def wake_up(self, tags=None):
        self.told.append("wake")

    def execute_model(self, step):
        self.told.append(step)

    def reload_weights(self):
        self.told.append("reload")
        if self.reload:
            self.reload()


def stand_ins():
    def module(name, **attributes):
        m = types.ModuleType(name)
        m.__path__ = []
        vars(m).update(attributes)
        return m

    torch = module("torch", cuda=types.SimpleNamespace(synchronize=mock.Mock()), as_tensor=lambda piece, device: piece)
    backend = module("vllm.device_allocator.sleep_mode_backend", CuMemBackend=CuMemBackend, SleepModeBackendFactory=mock.Mock())
    inputs = module(
        "medusa_vllm.inputs",
        cached=lambda runner: [("kv", runner.cache, "kv", {}), ("table", runner.table, "input", {})],
        weights=lambda runner: [(f"w{i}", t, "weight", {}) for i, t in enumerate(runner.model.parameters())],
        once=lambda found, seen: found,
    )
    modules = [
        torch, module("medusa_graphs", KV="kv", marks=types.SimpleNamespace(extent=lambda t: t.size)), module("medusa_graphs.ranges", Memory=Piece), backend, inputs,
        module("vllm"), module("vllm.v1"), module("vllm.v1.worker", gpu_worker=types.SimpleNamespace(Worker=Stock)),
        module("vllm.device_allocator", get_mem_allocator_instance=lambda: allocator),
    ]  # fmt: skip
    return {m.__name__: m for m in modules}


allocator = Allocator()
with mock.patch.dict(sys.modules, stand_ins()):
    import medusa_vllm

    with mock.patch.object(medusa_vllm, "inputs", sys.modules["medusa_vllm.inputs"], create=True):
        from medusa_vllm import sleep
from medusa_vllm.gaps import gaps  # noqa: E402


class Session:
    def __init__(self, told, mapped):
        self.told, self.mapped, self.named = told, mapped, {"w0": (0, 8)}

    def sleep(self):
        self.told.append("graphs sleep")

    def wake(self, same):
        self.told.append(f"graphs wake same={same}")
        return self.mapped.pop(0)


class Worker(sleep.Sleeper):
    def __init__(self, *mapped):
        self.told, self.reload, self.good = [], None, True
        self.session, self.model_config = Session(self.told, list(mapped)), types.SimpleNamespace(sleep_mode_backend="cumem")
        self.weight = Piece(0, 8)
        self.model_runner = types.SimpleNamespace(model=types.SimpleNamespace(parameters=lambda: [self.weight]))
        use = types.SimpleNamespace(graphs={"label": 1}, asleep=False, usable=lambda: self.told.append("check") or self.good)
        self.graphs = types.SimpleNamespace(use=use, rise=lambda: self.told.append("rise"))

    def drop(self, reason):
        self.told.append(reason)


class Sleeps(unittest.TestCase):
    def test_weights_that_were_kept(self):
        w = Worker(True)
        w.sleep(1)
        self.assertTrue(w.asleep and w.graphs.use.asleep and w.model_config.sleep_mode_backend == "medusa")
        w.wake_up()
        w.told.append("awake")
        w.execute_model("step")
        self.assertEqual(w.told, ["graphs sleep", "sleep 1", "wake", "graphs wake same=True", "check", "rise", "awake", "step"])

    def test_graphs_that_do_not_wake(self):
        w = Worker(True)
        w.good = False
        w.sleep(1)
        w.wake_up()
        w.execute_model("step")
        self.assertEqual(w.told[3:], ["graphs wake same=True", "check", "step"])

    def test_weights_that_come_later(self):
        w = Worker(False, True)
        w.sleep(2)
        self.assertFalse(w._sleep_saved_buffers)
        w.wake_up(["weights"])
        w.reload_weights()
        w.wake_up(["kv_cache"])
        w.execute_model("step")
        w.execute_model("step")
        want = ["graphs sleep", "sleep 2", "wake", "graphs wake same=False", "reload", "wake", "graphs wake same=False", "check", "rise", "step", "step"]
        self.assertEqual(w.told, want)

    def test_weights_that_are_reloaded(self):
        w = Worker(True)
        w.reload_weights()
        w.reload = lambda: setattr(w, "weight", Piece(8, 8))
        w.reload_weights()
        self.assertEqual(w.told, ["reload", "reload", "weights were reloaded to another place (w0)"])

    def test_nothing_is_restored(self):
        w = Worker()
        w.graphs.use.graphs = {}
        w.sleep(1)
        w.wake_up()
        w.execute_model("step")
        self.assertEqual((w.told, w.model_config.sleep_mode_backend), (["sleep 1", "wake", "step"], "cumem"))
        self.assertTrue(w._sleep_saved_buffers)


class Backends(unittest.TestCase):
    """At 0 and 16: weights of 8 bytes each and others; at 32: 16 bytes of KV cache, and a table."""

    def setUp(self):
        allocator.pointer_to_data = Allocator((0, 16, "weights"), (32, 32, "kv_cache")).pointer_to_data
        device[:] = range(64)
        runner = types.SimpleNamespace(cache=Piece(32, 16), table=Piece(48, 8), model=types.SimpleNamespace(parameters=lambda: [Piece(0, 8)]))
        sleep.Backend.worker = types.SimpleNamespace(model_runner=runner)

    @contextlib.contextmanager
    def asleep(self, level):
        backend = sleep.Backend.__new__(sleep.Backend)
        backend.kept = []
        backend.suspend(level)
        yield backend
        self.assertEqual(backend.kept, [])

    def test_what_is_kept(self):
        for level, lost in {1: range(32, 48), 2: [*range(8), *range(32, 48)]}.items():
            self.setUp()
            with self.asleep(level) as backend:
                backend.resume()
            self.assertEqual(list(device), [0 if i in lost else i for i in range(64)])

    def test_a_tag_at_a_time(self):
        with self.asleep(2) as backend:
            backend.resume(["weights"])
            self.assertEqual(list(device[:64]), [0] * 8 + list(range(8, 32)) + [0] * 32)
            device[8] = 1  # the engine is at work
            backend.resume(["kv_cache"])
        self.assertEqual((device[8], list(device[48:])), (1, list(range(48, 64))))

    def test_gaps(self):
        for known, want in {
            (): [(10, 20)], ((10, 20),): [], ((0, 100),): [], ((12, 2), (20, 4)): [(10, 2), (14, 6), (24, 6)],
            ((20, 4), (18, 4)): [(10, 8), (24, 6)], ((0, 10), (30, 1)): [(10, 20)], ((25, 10),): [(10, 15)], ((5, 10),): [(15, 15)],
        }.items():  # fmt: skip
            self.assertEqual(list(gaps(10, 20, list(known))), want)


class TestProgram(unittest.TestCase):
    def test_modules_have_the_names_that_programs_use(self):
        """They cannot be imported without vLLM."""
        here = os.path.dirname(os.path.abspath(__file__))

        def tree(name):
            with open(os.path.join(here, name + ".py"), encoding="utf-8") as f:
                return ast.parse(f.read())

        modules = "captures", "engine", "held", "noops", "serving"
        has = {name: defined(tree(name).body) for name in modules}
        for program in "engine", "sleeper":
            nodes = [n for n in ast.walk(tree(program)) if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)]
            used = {(n.value.id, n.attr) for n in nodes if n.value.id in modules}
            self.assertGreater(len(used), 5)
            self.assertEqual({(module, name) for module, name in used if name not in has[module]}, set(), program)


def defined(body):
    """The names that statements of a module define."""
    targets = [t for n in body if isinstance(n, ast.Assign) for t in n.targets]
    return {n.name for n in body if isinstance(n, (ast.FunctionDef, ast.ClassDef))} | {t.id for t in targets if isinstance(t, ast.Name)}


if __name__ == "__main__":
    unittest.main()
