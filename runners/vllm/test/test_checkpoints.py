"""Tests of what the identity says of a model and its checkpoint. They need neither vLLM nor torch."""

import json
import os
import sys
import tempfile
import types
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from medusa_vllm import checkpoints  # noqa: E402


def form(**fields):
    return checkpoints.form(types.SimpleNamespace(to_json_string=lambda: json.dumps(fields)))


class Form(unittest.TestCase):
    def test_checkpoints_of_one_model(self):
        """A base model and a fine-tune of it, which another program has written."""
        shape = {"hidden_size": 64, "architectures": ["LlamaForCausalLM"]}
        tuned = {"_name_or_path": "/models/x", "transformers_version": "5.0", "torch_dtype": "bfloat16", "eos_token_id": [2, 3], "pad_token_id": 0}
        self.assertEqual(form(**shape, _name_or_path="org/name", dtype="float32"), form(**tuned, **shape))
        part = shape | {"model_type": "llama"}
        self.assertEqual(form(text_config=part | {"dtype": "float32"}), form(text_config=part))

    def test_other_models(self):
        shape = {"hidden_size": 64, "quantization_config": {"quant_method": "fp8"}}
        for change in {"hidden_size": 32}, {"quantization_config": {"quant_method": "gptq"}}, {"quantization_config": {"quant_method": "fp8", "dtype": "fp8_e4m3"}}, {"rope_theta": 1e6}:
            with self.subTest(change):
                self.assertNotEqual(form(**shape), form(**shape | change))


class Contents(unittest.TestCase):
    def written(self, **files):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        for name, data in files.items():
            with open(os.path.join(folder, name.replace("_", ".")), "wb") as f:
                f.write(data)
        return folder

    def test_bytes_count_and_names_do_not(self):
        large = bytes(3 * checkpoints.PART)
        digest = checkpoints.contents([self.written(a_safetensors=large, b_safetensors=b"1", config_json=b"{}")])
        self.assertEqual(digest, checkpoints.contents([self.written(model_safetensors=large, other_bin=b"1")]))
        changed = bytearray(large)
        changed[-1] = 1
        for other in {"a_safetensors": changed, "b_safetensors": b"1"}, {"a_safetensors": large, "b_safetensors": b"2"}, {"a_safetensors": large}:
            self.assertNotEqual(digest, checkpoints.contents([self.written(**other)]))

    def test_no_weights(self):
        with self.assertRaisesRegex(OSError, "no file ends with .safetensors"):
            checkpoints.contents([self.written(config_json=b"{}")])


if __name__ == "__main__":
    unittest.main()
