"""Tests of the other values that a recording loads. They need neither vLLM nor torch: doubles take their places."""

import contextlib
import importlib
import os
import sys
import types
import unittest
import unittest.mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

ANY, OTHER, COUNT = range(3)


class Model:
    def __init__(self):
        self.loaded = {}

    def load_weights(self, weights, strict=False):
        self.loaded = dict(weights)
        return set(self.loaded)


class Values(unittest.TestCase):
    def setUp(self):
        self.base, self.dummy, self.utils = (types.SimpleNamespace() for _ in range(3))
        self.base.initialize_model = lambda **kwargs: Model()
        self.filled = []
        self.utils.initialize_single_dummy_weight = self.dummy.initialize_single_dummy_weight = lambda param, *args: self.filled.append(param)
        loaders = types.SimpleNamespace(base_loader=self.base, dummy_loader=self.dummy, weight_utils=self.utils, get_model_loader=None)
        medusa = types.SimpleNamespace(WEIGHTS_ANY=ANY, WEIGHTS_OTHER=OTHER, WEIGHTS_COUNT=COUNT, other_weights=lambda name, t: f"other {name}")
        doubles = {"torch": types.SimpleNamespace(no_grad=contextlib.nullcontext), "medusa_graphs": medusa, "vllm.model_executor.model_loader": loaders}
        doubles |= {"vllm": types.ModuleType("vllm"), "vllm.model_executor": types.ModuleType("vllm.model_executor")}
        self.enterContext(unittest.mock.patch.dict(sys.modules, doubles))
        sys.modules.pop("medusa_vllm.values", None)
        self.values = importlib.import_module("medusa_vllm.values")  # the package keeps the module of an earlier test
        self.addCleanup(sys.modules.pop, "medusa_vllm.values", None)

    def tensor(self, device="cpu"):
        t = types.SimpleNamespace(is_cuda=device == "cuda", device=types.SimpleNamespace(type=device), now="own")
        t.copy_ = lambda new: vars(t).update(now=new) or t
        return t

    def load(self, told, tensors):
        with self.values.loaded(told):
            model = self.base.initialize_model(vllm_config=None)
            model.load_weights(iter(tensors.items()), strict=True)
        return model.loaded

    def test_a_start_loads_its_checkpoint(self):
        tensors = {"a": self.tensor()}
        for told in ANY, COUNT:
            self.assertEqual(self.load(told, tensors), tensors)

    def test_other_values(self):
        """On the host in place of the checkpoint's tensor, on the device in its memory: a loader's allocations stay the same."""
        device = self.tensor("cuda")
        found = self.load(OTHER, {"a": self.tensor(), "b": device})
        self.assertEqual(found["a"], "other a")
        self.assertIs(found["b"], device)
        self.assertEqual(device.now, "other b")
        self.assertEqual(self.load(ANY, {"a": 1}), {"a": 1})

    def test_dummy_weights(self):
        param, later = self.tensor("cuda"), self.tensor("meta")
        for owner in self.dummy, self.utils:
            with self.values.loaded(OTHER):
                owner.initialize_single_dummy_weight(param, 0, 1)
                owner.initialize_single_dummy_weight(later, 0, 1)
            self.assertEqual((param.now, later.now), ("other ", "own"))
            param.now = "own"
        self.assertEqual(len(self.filled), 4)

    def test_a_loader_that_gives_no_values(self):
        with self.assertRaisesRegex(ValueError, "no values that could be changed"), self.values.loaded(OTHER):
            self.base.initialize_model(vllm_config=None)

    def test_an_error_of_the_loader_stays(self):
        with self.assertRaises(KeyError), self.values.loaded(OTHER):
            raise KeyError("of the loader")

    def test_factors(self):
        config = types.SimpleNamespace(load_config=types.SimpleNamespace(load_format="dummy"))
        self.assertEqual(self.values.factors(ANY, config), {})
        self.assertEqual(self.values.factors(OTHER, config), {"model.checkpoint": "other"})
        self.assertEqual(self.values.factors(COUNT, config), {"model.checkpoint": "dummy"})


if __name__ == "__main__":
    unittest.main()
