"""Tests of the graph manager with stand-ins for torch and vLLM: what a restored start does in place of captures."""

import contextlib
import dataclasses
import enum
import os
import sys
import types
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))


class Mode(enum.Enum):
    NONE = 0
    PIECEWISE = 1
    FULL = 2


@dataclasses.dataclass(frozen=True)
class Desc:
    cg_mode: Mode
    num_tokens: int
    num_reqs: int = 1
    uniform_token_count: int = 1
    num_active_loras: int = 0


class CudaGraphManager:
    """As vLLM's, which captures what the factory makes."""

    def __init__(self, vllm_config, device, cudagraph_mode, decode_query_len, lora_capture_cases=None, varlen_decode=False):
        self.vllm_config, self.device, self.cudagraph_mode, self.decode_query_len = vllm_config, device, cudagraph_mode, decode_query_len
        self.lora_capture_cases, self.varlen_decode = lora_capture_cases or [0], varlen_decode
        self._capture_descs = {Mode.FULL: [Desc(Mode.FULL, 2), Desc(Mode.FULL, 1)]}
        self.graphs, self._graphs_captured = {}, False

    def capture(self, create_forward_fn, progress_bar_desc=""):
        for desc in self._capture_descs[Mode.FULL]:
            create_forward_fn(desc, warmup=True)(Mode.NONE)
            create_forward_fn(desc, warmup=False)(Mode.NONE)
            self.graphs[desc] = "captured"
        self._graphs_captured = True


class ModelCudaGraphManager(CudaGraphManager):
    """As vLLM's: its factory marks dummy rows as padding, which no graph does, and clears what says where rows lie."""

    def capture(self, inputs):
        def create_forward_fn(desc, warmup):
            inputs.is_padding = True
            for t in inputs.rows:
                t.value = 0
            inputs.made.append((desc.num_tokens, warmup))
            return lambda mode: inputs.forwards.append(desc.num_tokens)

        super().capture(create_forward_fn, "Capturing")


def stand_ins():
    def module(name, **attributes):
        m = types.ModuleType(name)
        vars(m).update(attributes)
        return m

    cuda = types.SimpleNamespace(synchronize=lambda: None)
    torch = module("torch", inference_mode=lambda: lambda f: f, empty=lambda *args, **kwargs: None, cuda=cuda)
    marks = module("medusa.marks", graph=lambda *args: None, blocks=lambda: None)
    pieces = types.SimpleNamespace(keys={}, recorded=contextlib.nullcontext, install=lambda graphs: None)
    modules = [
        torch, marks, module("medusa", marks=marks, OUTPUT=3, PROFILE=1, __path__=[]), module("vllm", __path__=[]),
        module("vllm.config", __path__=[]), module("vllm.config.compilation", CUDAGraphMode=Mode),
        module("vllm.forward_context", BatchDescriptor=Desc), module("vllm.v1", __path__=[]), module("vllm.v1.worker", __path__=[]),
        module("vllm.v1.worker.gpu", __path__=[]),
        module("vllm.v1.worker.gpu.cudagraph_utils", CudaGraphManager=CudaGraphManager, ModelCudaGraphManager=ModelCudaGraphManager),
        module("medusa_vllm.adapters", made_up=lambda runner: contextlib.nullcontext()),
        module("medusa_vllm.inputs", one_token_each=lambda runner: None),
        module("medusa_vllm.pieces", Pieces=lambda session, batches: pieces),
    ]  # fmt: skip
    return {m.__name__: m for m in modules}


class Tensor:
    def __init__(self, value):
        self.value = value

    def clone(self):
        return Tensor(self.value)

    def copy_(self, other):
        self.value = other.value

    fill_ = __init__


class Session:
    def __init__(self, labels, run):
        self.restoring, self.captured, self.run, self.phases = labels is not None, [], run, []
        self.found = [types.SimpleNamespace(label=label, usable=lambda: True) for label in labels or ()]

    def graphs(self):
        return self.found

    def phase(self, name):
        self.phases.append((name, len(self.inputs.made)))

    def __getattr__(self, name):
        return lambda *args, **kwargs: None


class Captures(unittest.TestCase):
    def setUp(self):
        patch = mock.patch.dict(sys.modules, stand_ins())
        patch.start()
        self.addCleanup(patch.stop)
        self.addCleanup(sys.modules.pop, "medusa_vllm.graphs", None)
        from medusa_vllm import graphs, labels

        self.manager, self.label = graphs.GraphManager, labels.label

    def start(self, restored, run=0, **made):
        """The manager once the model's capture is done, and the inputs."""
        descs = [Desc(Mode.FULL, 1), Desc(Mode.FULL, 2)]
        session = Session(map(self.label, descs) if restored else None, run)
        model = types.SimpleNamespace(get_hidden_size=lambda: 1, dtype=None)
        made = CudaGraphManager(None, None, None, 1, **made)
        inputs = types.SimpleNamespace(is_padding=False, made=[], forwards=[], rows=[])
        self.before, session.inputs = [], inputs
        self.phases = session.phases

        def prepared():
            self.before.append((inputs.is_padding, list(inputs.forwards)))

        manager = self.manager(session, types.SimpleNamespace(model_config=model), made, lambda: None, prepared)
        manager.capture(inputs)
        return manager, inputs

    def test_a_restored_start_leaves_what_captures_leave(self):
        native, captured = self.start(False)
        restored, inputs = self.start(True)
        self.assertTrue(captured.is_padding and inputs.is_padding)
        self.assertEqual(captured.made, 2 * inputs.made)
        self.assertEqual((captured.forwards, inputs.forwards), ([2, 2, 1, 1], []))
        self.assertTrue(native._graphs_captured and restored._graphs_captured)
        self.assertEqual({d: g.label for d, g in restored.graphs.items()}, {d: self.label(d) for d in native.graphs})

    def test_a_replay_has_the_rows_that_verification_chose(self):
        manager, inputs = self.start(False)
        tokens, positions, slots, first, second = inputs.rows = [Tensor(n) for n in range(3, 8)]
        padding = Tensor(True)
        manager.runner.input_buffers = types.SimpleNamespace(input_ids=tokens, positions=positions, is_padding=padding)
        manager.runner.block_tables = types.SimpleNamespace(slot_mappings=slots, input_block_tables=[first, second])
        made = len(inputs.made)
        manager.before_replay(self.label(Desc(Mode.FULL, 2)))
        self.assertEqual(inputs.made[made:], [(2, False)])
        self.assertEqual(([t.value for t in inputs.rows], padding.value), ([3, 4, 5, 6, 7], False))

    def test_factories_are_no_skipped_work(self):
        """A native start has called all of them when the phases begin that a restored one skips, and so has the latter."""
        for restored in False, True:
            _, inputs = self.start(restored)
            self.assertEqual(self.phases[0], ("warmup", 4))
            self.assertEqual(inputs.made[:4], [(2, True), (2, False), (1, True), (1, False)])

    def test_arguments_of_the_manager_that_vllm_made(self):
        self.assertTrue(self.start(False, varlen_decode=True)[0].varlen_decode)
        with mock.patch.object(ModelCudaGraphManager, "__init__", lambda self, device, lost: None):
            with self.assertRaisesRegex(AttributeError, "does not keep lost"):
                self.start(False)

    def test_the_profile_sees_what_factories_write(self):
        """Before a forward has run."""
        _, inputs = self.start(False, run=1)
        self.assertEqual((self.before, inputs.forwards), ([(True, [])], [2, 2, 1, 1]))
        self.start(False)
        self.assertEqual(self.before, [])


class Wrapper(unittest.TestCase):
    def test_adapters_of_a_replay(self):
        """Of a whole step as of a piece: as many as its capture had, once there is a token in each row."""
        found, told = stand_ins(), []
        found["medusa_vllm.adapters"].select = lambda runner, desc: told.append((runner, desc))
        found["medusa_vllm.inputs"].one_token_each = told.append
        names = "vllm.compilation", "vllm.compilation.cuda_graph", "vllm.v1.worker.workspace"
        found |= {name: types.ModuleType(name) for name in names}
        vars(found[names[1]]).update(CUDAGraphEntry=None, CUDAGraphWrapper=type)
        vars(found["vllm.forward_context"]).update(get_forward_context=None, is_forward_context_available=None)
        found[names[2]].lock_workspace = None
        with mock.patch.dict(sys.modules, found):
            self.addCleanup(sys.modules.pop, "medusa_vllm.wrapper", None)
            from medusa_vllm import wrapper

            pieces = types.SimpleNamespace(before_replay=lambda runner, name: told.append((runner, name)))
            this = types.SimpleNamespace(runner="runner", pieces=pieces)
            with mock.patch.object(wrapper, "adapters", found["medusa_vllm.adapters"]):
                wrapper.ModelWrapper.before_replay(this, {"whole": "its descriptor"}, "whole")
                wrapper.ModelWrapper.before_replay(this, {"whole": "its descriptor"}, "piece")
        self.assertEqual(told, ["runner", ("runner", "its descriptor"), "runner", ("runner", "piece")])


if __name__ == "__main__":
    unittest.main()
