"""Tests of the inputs of LoRA's kernels for a replay, with stand-ins for vLLM's managers. They need neither vLLM nor torch nor numpy."""

import contextlib
import os
import sys
import types
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))


class Tensor:
    pass


def stand_ins(tables):
    def module(name, **attributes):
        m = types.ModuleType(name)
        vars(m).update(attributes)
        return m

    names = ["vllm", "vllm.lora", "vllm.lora.ops", "vllm.lora.ops.triton_ops"]
    utils = module("vllm.lora.ops.triton_ops.utils", **tables)
    packages = {name: module(name, __path__=[]) for name in names}
    packages[names[-1]].utils = utils
    return packages | {
        utils.__name__: utils,
        "numpy": module("numpy", array=lambda values, dtype: values, int32="int32"),
        "torch": module("torch", Tensor=Tensor),
    }


class Manager:
    """As vLLM's manager of slots: it tells kernels of the adapters that it holds."""

    def __init__(self):
        self.lora_index_to_id, self._last_mapping, self.told = [7, None], "last", []

    def _set_adapter_mapping(self, mapping):
        self.told.append((mapping, list(self.lora_index_to_id)))


class Loader:
    def __init__(self):
        self._adapter_manager, self.loaded = Manager(), []

    def set_active_adapters(self, requests, mapping):
        self.loaded.append(requests)


class Runner:
    """As vLLM's model runners: they make up requests for adapters, and have them loaded."""

    lora_config, max_num_reqs = "lora", 3

    def __init__(self):
        self.lora_manager = Loader()
        self.lora_manager._adapter_manager.punica_wrapper_mapping = {"language": types.SimpleNamespace(token_mapping_meta="tokens", prompt_mapping_meta="prompts")}

    @contextlib.contextmanager
    def maybe_select_dummy_loras(self, config, scheduled, num_active_loras):
        assert config == self.lora_config
        self.lora_manager.set_active_adapters({"made up"}, (scheduled, num_active_loras))
        yield


def batch(tokens, active):
    return types.SimpleNamespace(num_tokens=tokens, num_active_loras=active)


class Adapters(unittest.TestCase):
    def setUp(self):
        self.table = Tensor()
        patch = mock.patch.dict(sys.modules, stand_ins({"_LORA_A_PTR_DICT": {(1, 2): (self.table, 16, 4, 1)}, "_LORA_B_PTR_DICT": {(3,): (0, self.table)}}))
        patch.start()
        self.addCleanup(patch.stop)
        self.addCleanup(sys.modules.pop, "medusa_vllm.adapters", None)
        sys.modules.pop("medusa_vllm.adapters", None)
        import medusa_vllm.adapters

        self.adapters = medusa_vllm.adapters

    def test_rows_take_turns(self):
        runner = Runner()
        self.adapters.select(runner, batch(8, 2))
        self.assertEqual(runner.lora_manager._adapter_manager.told, [(([2, 3, 3], 2), [1, 2])])

    def test_nothing_is_loaded(self):
        """The slots are a user's: their weights stay, and the next step tells of its own adapters."""
        runner = Runner()
        self.adapters.select(runner, batch(1, 1))
        manager = runner.lora_manager._adapter_manager
        self.assertEqual((runner.lora_manager.loaded, manager.lora_index_to_id, manager._last_mapping), ([], [7, None], None))
        runner.lora_manager.set_active_adapters("a user's", None)
        self.assertEqual(runner.lora_manager.loaded, ["a user's"])

    def test_without_adapters(self):
        runner = types.SimpleNamespace(lora_config=None)
        self.adapters.select(runner, batch(1, 0))
        with self.adapters.made_up(runner):
            pass
        self.assertEqual(list(self.adapters.owners(runner)), [])

    def test_memory_of_kernels(self):
        names = [name for name, _ in self.adapters.owners(Runner())]
        self.assertEqual(names, ["lora.language", "lora.language.tokens", "lora.language.prompts"])
        self.assertEqual(list(self.adapters.tables()), [("lora.table.a.0.0", self.table), ("lora.table.b.0.1", self.table)])
        found = [("layer.weight.0", 1), ("layer.lora_a_stacked.0", 2), ("layer.w13_lora_b_stacked.1", 3)]
        self.assertEqual(self.adapters.slots(found), found[1:])


if __name__ == "__main__":
    unittest.main()
