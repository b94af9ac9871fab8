"""Tests of the graph manager with stand-ins for torch and vLLM: the steps of a restored start in place of captures."""

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
    """As vLLM's, which captures the forwards that the factory makes."""

    def __init__(self, vllm_config, device, cudagraph_mode, decode_query_len, lora_capture_cases=None, varlen_decode=False):
        self.vllm_config, self.device, self.cudagraph_mode, self.decode_query_len = vllm_config, device, cudagraph_mode, decode_query_len
        self.lora_capture_cases, self.varlen_decode = lora_capture_cases or [0], varlen_decode
        self._capture_descs = {Mode.FULL: [Desc(Mode.FULL, 2), Desc(Mode.FULL, 1)]}
        self.graphs, self._graphs_captured, self.use_breakable_cg = {}, False, False

    def capture(self, create_forward_fn, progress_bar_desc=""):
        for desc in self._capture_descs[Mode.FULL]:
            create_forward_fn(desc, warmup=True)(Mode.NONE)
            create_forward_fn(desc, warmup=False)(Mode.NONE)
            self.graphs[desc] = "captured"
        self._graphs_captured = True


class ModelCudaGraphManager(CudaGraphManager):
    """As vLLM's: its factory marks dummy rows as padding, which no graph does, and clears the places of rows."""

    def capture(self, inputs):
        def create_forward_fn(desc, warmup):
            inputs.is_padding = True
            for t in inputs.rows:
                t.value = 0
            inputs.made.append((desc.num_tokens, warmup))
            return lambda mode: inputs.forwards.append(desc.num_tokens)

        super().capture(create_forward_fn, "Capturing")


class SpeculatorCudaGraphManager(CudaGraphManager):
    """As vLLM's, of a draft model."""

    def capture(self, forward_fn, model_state, input_buffers):
        def create_forward_fn(desc, warmup):
            input_buffers.made.append((desc.num_tokens, warmup))
            return lambda mode: forward_fn(desc.num_tokens)

        super().capture(create_forward_fn, "Capturing")


class DraftModelSpeculator:
    """As vLLM's for EAGLE: two managers. The second makes no captures if there is one draft a step."""

    def __init__(self, inputs, drafts):
        self.inputs, self.drafts, self.model = inputs, drafts, None
        self.prefill_cudagraph_manager = SpeculatorCudaGraphManager(None, None, None, 1)
        self.decode_cudagraph_manager = SpeculatorCudaGraphManager(None, None, None, 1)

    def capture(self):
        self.prefill_cudagraph_manager.capture(lambda tokens: self.inputs.forwards.append(("prefill", tokens)), None, self.inputs)
        if self.drafts > 1:
            self.decode_cudagraph_manager.capture(lambda tokens: self.inputs.forwards.append(("decode", tokens)), None, self.inputs)


class EagleSpeculator(DraftModelSpeculator):
    pass


def stand_ins():
    def module(name, **attributes):
        m = types.ModuleType(name)
        vars(m).update(attributes)
        return m

    cuda = types.SimpleNamespace(synchronize=lambda: None)
    torch = module("torch", inference_mode=lambda: lambda f: f, empty=lambda *args, **kwargs: None, cuda=cuda)
    marks = module("medusa_graphs.marks", graph=lambda *args: None, blocks=lambda: None)
    pieces = types.SimpleNamespace(keys={}, memory={}, recorded=contextlib.nullcontext, install=lambda graphs: None)
    modules = [
        torch, marks, module("medusa_graphs", marks=marks, OUTPUT=3, PROFILE=1, __path__=[]), module("vllm", __path__=[]),
        module("vllm.config", __path__=[]), module("vllm.config.compilation", CUDAGraphMode=Mode),
        module("vllm.forward_context", BatchDescriptor=Desc), module("vllm.v1", __path__=[]), module("vllm.v1.worker", __path__=[]),
        module("vllm.v1.worker.gpu", __path__=[]),
        module("vllm.v1.worker.gpu.cudagraph_utils", CudaGraphManager=CudaGraphManager, ModelCudaGraphManager=ModelCudaGraphManager),
        module("medusa_vllm.adapters", made_up=lambda runner: contextlib.nullcontext()),
        module("medusa_vllm.inputs", even_queries=lambda runner, batch=None: None),
        module("medusa_vllm.breakable", Breakable=None, wrapper_in=lambda model: None),
        module("medusa_vllm.pieces", Pieces=lambda session, batches, part, memory: pieces),
        module("vllm.v1.worker.gpu.spec_decode", __path__=[]), module("vllm.v1.worker.gpu.spec_decode.eagle", __path__=[]),
        module("vllm.v1.worker.gpu.spec_decode.eagle.eagle3_utils", get_eagle3_aux_layers_from_config=lambda config: config),
        module("vllm.v1.worker.gpu.spec_decode.eagle.speculator", EagleSpeculator=EagleSpeculator), module("vllm.v1.worker.gpu.spec_decode.mtp", __path__=[]),
        module("vllm.v1.worker.gpu.spec_decode.mtp.speculator", MTPSpeculator=type("MTPSpeculator", (), {})),
        module("vllm.v1.worker.gpu.spec_decode.speculator", DraftModelSpeculator=DraftModelSpeculator),
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


class Starts(unittest.TestCase):
    def setUp(self):
        patch = mock.patch.dict(sys.modules, stand_ins())
        patch.start()
        self.addCleanup(patch.stop)
        for name in "graphs", "drafts":
            self.addCleanup(sys.modules.pop, "medusa_vllm." + name, None)
        from medusa_vllm import drafts, graphs, labels

        self.drafts, self.manager, self.label = drafts, graphs.GraphManager, labels.label

    def start(self, restored, run=0, drafts=0, kind=EagleSpeculator, **made):
        """The manager once the model's capture is done, and the inputs. drafts: a draft model's tokens in a step."""
        descs = [Desc(Mode.FULL, 1), Desc(Mode.FULL, 2)]
        parts = ["", "draft prefill ", "draft decode "][: 1 + min(drafts, 2)]
        session = self.session = Session([self.label(d, part) for part in parts for d in descs] if restored else None, run)
        model = types.SimpleNamespace(get_hidden_size=lambda: 1, dtype=None)
        made = ModelCudaGraphManager(None, None, None, 1, **made)
        inputs = types.SimpleNamespace(is_padding=False, made=[], forwards=[], rows=[])
        self.before, self.ends, session.inputs = [], [], inputs
        self.phases = session.phases

        def prepared():
            self.before.append((inputs.is_padding, list(inputs.forwards)))

        runner = types.SimpleNamespace(model_config=model, input_buffers=inputs, speculator=kind(inputs, drafts) if drafts else None)
        manager = self.manager(session, runner, made, lambda: self.ends.append(list(inputs.forwards)), prepared)
        manager.capture(inputs)
        if drafts:
            runner.speculator.capture()
        return manager, inputs


class Captures(Starts):
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
        tokens, positions, lengths, slots, first, second = inputs.rows = [Tensor(n) for n in range(3, 9)]
        padding = Tensor(True)
        manager.inputs = types.SimpleNamespace(input_ids=tokens, positions=positions, seq_lens=lengths, is_padding=padding)
        manager.runner.block_tables = types.SimpleNamespace(slot_mappings=slots, input_block_tables=[first, second])
        made = len(inputs.made)
        manager.before_replay(self.label(Desc(Mode.FULL, 2)))
        self.assertEqual(inputs.made[made:], [(2, False)])
        self.assertEqual(([t.value for t in inputs.rows], padding.value), ([3, 4, 5, 6, 7, 8], False))

    def test_factories_are_no_skipped_work(self):
        """Native and restored starts have called all factories before the phases that a restored start skips."""
        for restored in False, True:
            _, inputs = self.start(restored)
            self.assertEqual(self.phases[0], ("warmup", 4))
            self.assertEqual(inputs.made[:4], [(2, True), (2, False), (1, True), (1, False)])

    def test_arguments_of_the_manager_that_vllm_made(self):
        self.assertTrue(self.start(False, varlen_decode=True)[0].varlen_decode)
        made = ModelCudaGraphManager(None, None, None, 1)
        with mock.patch.object(ModelCudaGraphManager, "__init__", lambda self, device, lost: None):
            with self.assertRaisesRegex(AttributeError, "does not keep lost"):
                self.manager.arguments(made)

    def test_the_profile_sees_what_factories_write(self):
        """Before a forward has run."""
        _, inputs = self.start(False, run=1)
        self.assertEqual((self.before, inputs.forwards), ([(True, [])], [2, 2, 1, 1]))
        self.start(False)
        self.assertEqual(self.before, [])


class Drafts(Starts):
    def test_a_draft_models_graphs_are_captured_behind_the_models(self):
        """And a recording start ends behind the last of them."""
        for drafts, parts in {1: ["prefill"], 3: ["prefill", "decode"]}.items():
            manager, inputs = self.start(False, drafts=drafts)
            forwards = [2, 2, 1, 1, *((part, tokens) for part in parts for tokens in (2, 2, 1, 1))]
            self.assertEqual((inputs.forwards, self.ends), (forwards, [forwards]))
            labels = [self.label(Desc(Mode.FULL, n), part) for part in ["", *(f"draft {p} " for p in parts)] for n in (2, 1)]
            self.assertEqual(self.session.captured, labels)

    def test_restored_with_the_models(self):
        for drafts, factories in {1: 8, 3: 12}.items():
            manager, inputs = self.start(True, drafts=drafts)
            self.assertEqual((inputs.forwards, self.ends, len(inputs.made)), ([], [[]], factories))
            for m in manager.managers():
                self.assertEqual({d: g.label for d, g in m.graphs.items()}, {d: self.label(d, m.part) for d in m.descs("FULL")})
                self.assertTrue(m._graphs_captured)
            self.assertEqual([m.part for m in manager.managers()], ["", "draft prefill ", "draft decode "][: 1 + min(drafts, 2)])

    def test_a_restore_that_fails_captures_all(self):
        with mock.patch.object(Session, "graphs", lambda self: None):
            manager, inputs = self.start(True, drafts=3)
        self.assertEqual(len(inputs.forwards), 12)
        self.assertEqual([set(m.graphs.values()) for m in manager.managers()], 3 * [{"captured"}])

    def test_a_replay_has_its_own_managers_state(self):
        manager, inputs = self.start(False, drafts=3)
        for m in manager.managers():
            m.rebuild = lambda desc, part=m.part: inputs.rows.append((part, desc.num_tokens))
        manager.before_replay(self.label(Desc(Mode.FULL, 2), "draft decode "))
        self.assertEqual(inputs.rows, [("draft decode ", 2)])

    def test_other_speculators_are_refused(self):
        self.assertIsNone(self.drafts.reason(types.SimpleNamespace(speculator=EagleSpeculator(None, 1))))
        self.assertIsNone(self.drafts.reason(types.SimpleNamespace()))
        self.assertRegex(self.drafts.reason(types.SimpleNamespace(speculator=DraftModelSpeculator(None, 1))) or "", "drafts by a DraftModelSpeculator")
        drafter = types.SimpleNamespace(model=None)
        self.assertRegex(self.drafts.reason(types.SimpleNamespace(drafter=drafter)) or "", "drafts by a SimpleNamespace")

    def test_hidden_states_of_inner_layers(self):
        model = types.SimpleNamespace(get_eagle3_default_aux_hidden_state_layers=lambda: (1, 2, 3))
        runner = types.SimpleNamespace(use_aux_hidden_state_outputs=True, speculative_config=(0, 1), model=model)
        self.assertEqual(self.drafts.inner(runner), 2)
        runner.speculative_config = None
        self.assertEqual(self.drafts.inner(runner), 3)
        self.assertEqual(self.drafts.inner(types.SimpleNamespace()), 0)


class Wrapper(unittest.TestCase):
    def test_adapters_of_a_replay(self):
        """Of a whole step as of a piece: as many as its capture had, once the rows belong to requests."""
        found, told = stand_ins(), []
        found["medusa_vllm.adapters"].select = lambda runner, desc: told.append((runner, desc))
        found["medusa_vllm.inputs"].even_queries = lambda runner, batch: told.append(batch)
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
        self.assertEqual(told, ["its descriptor", ("runner", "its descriptor"), None, ("runner", "piece")])


if __name__ == "__main__":
    unittest.main()
