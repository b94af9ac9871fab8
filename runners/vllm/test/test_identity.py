"""Tests of the identity of an engine. They need neither vLLM nor torch."""

import os
import sys
import tempfile
import types
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from doubles import OFFLOADING, config  # noqa: E402
from medusa_vllm import identity  # noqa: E402


class Hashed(types.SimpleNamespace):
    """As vLLM's configuration, whose hash covers its fields."""

    def compute_hash(self):
        return "hash of " + self.model_config.model


class Drafting(types.SimpleNamespace):
    """The same of a draft model."""

    def compute_hash(self):
        return "hash of " + self.speculative_config.draft_model_config.model


class Identity(unittest.TestCase):
    def factors(self, environment="", **changes):
        return identity.factors(config(**changes), "0.26.0", "2.11.0", "13.0", {"VLLM_X": environment})

    def test_what_graphs_depend_on_counts(self):
        same = self.factors()
        self.assertEqual(same, self.factors())
        elsewhere = {"VLLM_X": "", "VLLM_CONFIG_ROOT": "/home/other/.config/vllm"}
        self.assertEqual(same, identity.factors(config(), "0.26.0", "2.11.0", "13.0", elsewhere))
        for change in [
            {"scheduler_config__max_num_seqs": 9},
            {"scheduler_config__max_num_batched_tokens": 1024},
            {"model_config__max_model_len": 512},
            {"cache_config__gpu_memory_utilization": 0.8},
            {"compilation_config__cudagraph_capture_sizes": [1, 2, 4]},
            {"compute_hash": lambda: "other"},
            {"load_config__load_format": "auto"},
            {"model_config__enable_cumem_allocator": True},
            {"kv_transfer_config": OFFLOADING},
            {"environment": "1"},
        ]:
            with self.subTest(change):
                self.assertNotEqual(same, self.factors(**change))
        self.assertTrue(all(isinstance(v, str) for v in same.values()))

    def test_settings_that_the_hash_of_vllm_leaves_out(self):
        speculative = [types.SimpleNamespace(method="ngram", num_speculative_tokens=n) for n in (2, 3)]
        self.assertNotEqual(*(self.factors(speculative_config=c) for c in speculative))
        files = [types.SimpleNamespace(language_model_only=False, limit_per_prompt={"image": n}, mm_processor_kwargs=None) for n in (1, 2)]
        self.assertNotEqual(*(self.factors(model_config__multimodal_config=c) for c in files))

    def test_loaders_of_the_same_files(self):
        files = [self.factors(load_config__load_format=name) for name in ("auto", "safetensors", "fastsafetensors")]
        self.assertEqual(files[0], files[1])
        self.assertEqual(files[0], files[2])

    def test_where_a_model_lies_does_not_count(self):
        """vLLM's hash holds its path."""
        with tempfile.TemporaryDirectory() as a, tempfile.TemporaryDirectory() as b:
            plain = [vars(config(model_config__model=folder)) for folder in (a, b)]
            hashed = [Hashed(**{k: v for k, v in p.items() if k != "compute_hash"}) for p in plain]
            found = [identity.factors(c, "0.26.0", "2.11.0", "13.0", {}) for c in hashed]
            self.assertEqual([c.model_config.model for c in hashed], [a, b])
        self.assertEqual(*found)

    def test_draft_model(self):
        """Its configuration counts, its place does not."""
        def found(text, folder):
            draft = types.SimpleNamespace(hf_config=types.SimpleNamespace(to_json_string=lambda: text), model=folder, revision=None)
            drafts = types.SimpleNamespace(method="eagle", num_speculative_tokens=2, draft_model_config=draft)
            hashed = Drafting(**{k: v for k, v in vars(config(speculative_config=drafts)).items() if k != "compute_hash"})
            return identity.factors(hashed, "0.26.0", "2.11.0", "13.0", {})

        self.assertEqual(found('{"a": 1}', "/models/a"), found('{"a": 1}', "org/b"))
        self.assertNotEqual(found('{"a": 1}', "/models/a"), found('{"a": 2}', "/models/a"))

    def test_revision_of_a_hub(self):
        self.assertEqual(self.factors(), self.factors(model_config__revision="def"))


if __name__ == "__main__":
    unittest.main()
