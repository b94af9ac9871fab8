"""Tests of the names that tensors get, with stand-ins for torch and vLLM."""

import os
import sys
import types
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))


class Tensor:
    """A part of some memory."""

    dtype, device = "bf16", "cuda"

    def __init__(self, memory=None):
        self.memory = memory

    def untyped_storage(self):
        return types.SimpleNamespace(data_ptr=lambda: self.memory)

    def set_(self, storage):
        self.memory = storage.data_ptr()
        return self


class Module:
    def __init__(self, **parameters):
        self.parameters = parameters

    def named_parameters(self):
        return self.parameters.items()

    def named_buffers(self):
        return ()


SAMPLER = types.SimpleNamespace(_TRITON_BUFFER_CACHE={"a": Tensor(0xA000)}, _TRITON_SPLIT_CACHE={"b": {"c": Tensor(0xB000)}})
WORKSPACE = types.SimpleNamespace(_current_workspaces=[Tensor(0x9000), None])


class DraftModelSpeculator:
    model = Module(weight="of the draft model")
    attn_groups = [["c"]]


def stand_ins():
    def module(name, **attributes):
        m = types.ModuleType(name)
        vars(m).update(attributes)
        return m

    spec = "vllm.v1.worker.gpu.spec_decode"
    packages = "vllm", "vllm.v1", "vllm.v1.sample", "vllm.v1.worker", "vllm.v1.worker.gpu", spec
    modules = [
        *(module(name, __path__=[]) for name in packages), module("vllm.v1.utils", CpuGpuBuffer=type("CpuGpuBuffer", (), {})),
        module("vllm.v1.sample.ops", topk_topp_triton=SAMPLER), module("vllm.v1.worker.workspace", current_workspace_manager=lambda: WORKSPACE), module("vllm.forward_context", BatchDescriptor=None), module(spec + ".speculator", DraftModelSpeculator=DraftModelSpeculator),
        module("torch", Tensor=Tensor, empty=lambda size, dtype, device: Tensor()), module("numpy"), module("medusa_graphs", WEIGHT="weight", KV="kv", SCRATCH="scratch"),
    ]  # fmt: skip
    return {m.__name__: m for m in modules}


class Inputs(unittest.TestCase):
    def setUp(self):
        patch = mock.patch.dict(sys.modules, stand_ins())
        patch.start()
        self.addCleanup(patch.stop)
        for name in "inputs", "drafts", "adapters":
            self.addCleanup(sys.modules.pop, "medusa_vllm." + name, None)
        from medusa_vllm import inputs

        self.inputs = inputs

    def test_workspaces(self):
        """Graphs compute in them, and backends of attention have made them once the cache exists."""
        runner = types.SimpleNamespace(kv_caches=[Tensor(0x1000)], kv_cache_config=types.SimpleNamespace(num_blocks=4))
        with mock.patch.multiple(self.inputs, named=lambda *_: [], others=lambda _: []):
            found = self.inputs.cached(runner)
        self.assertIn(("workspace.0", WORKSPACE._current_workspaces[0], "scratch", {}), found)

    def test_memory_of_the_sampler(self):
        self.assertEqual([(name, t.memory, role) for name, t, role, _ in self.inputs.sampled()], [("sampler.0", 0xA000, "scratch"), ("sampler.1", 0xB000, "scratch")])

    def test_requests(self):
        """The state that a step leaves for each request has a name. A runner without it has none."""
        penalties = types.SimpleNamespace(output_bin_counts=Tensor())
        runner = types.SimpleNamespace(req_states="states", sampler=types.SimpleNamespace(penalties_state=penalties))
        self.assertEqual(self.inputs.requests(runner), {"requests": "states", "penalties": penalties})
        self.assertEqual(self.inputs.requests(types.SimpleNamespace()), {})

    def test_caches(self):
        """As vLLM has them, unless a layer has several: then each memory once, as a whole."""
        first, second = Tensor(0x1000), Tensor(0x2000)
        self.assertEqual(self.inputs.caches(types.SimpleNamespace(kv_caches=[first, second])), [first, second])
        states = [Tensor(0x2000), Tensor(0x2000)]
        runner = types.SimpleNamespace(kv_caches=[first, states, second], model_config=types.SimpleNamespace(dtype="bf16"))
        self.assertEqual([t.memory for t in self.inputs.caches(runner)], [0x1000, 0x2000])

    def test_lengths(self):
        """With three drafts, a sequence has the four tokens of its step at least."""
        drafts = types.SimpleNamespace(num_speculative_tokens=3)
        mode = types.SimpleNamespace(cudagraph_mode=types.SimpleNamespace(name="FULL_DECODE_ONLY"))
        runner = types.SimpleNamespace(
            vllm_config=types.SimpleNamespace(speculative_config=drafts, compilation_config=mode), model_config=types.SimpleNamespace(max_model_len=128)
        )
        self.assertEqual(self.inputs.lengths(runner), {"lo": 4, "hi": 128})
        runner.model_config.max_model_len = 4
        self.assertEqual(self.inputs.lengths(runner), {"lo": 3, "hi": 4})

    def test_attention_of_a_draft_model(self):
        runner = types.SimpleNamespace(attn_groups=[["a"], ["b"]], speculator=DraftModelSpeculator())
        self.assertEqual(self.inputs.attention(runner), {"attention": ["a", "b"], "draft.attention": ["c"]})
        runner.speculator = None
        self.assertEqual(self.inputs.attention(runner), {"attention": ["a", "b"], "draft.attention": []})

    def test_weights_of_a_draft_model(self):
        runner = types.SimpleNamespace(model=Module(weight="of the model"), speculator=DraftModelSpeculator())
        found = [("weight", "of the model", "weight", {}), ("draft.weight", "of the draft model", "weight", {})]
        self.assertEqual(self.inputs.weights(runner), found)
        runner.speculator = None
        self.assertEqual(self.inputs.weights(runner), found[:1])


if __name__ == "__main__":
    unittest.main()
