"""Tests of the decision which starts Medusa takes part in. They need neither vLLM nor torch."""

import contextlib
import dataclasses
import os
import sys
import types
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from doubles import OFFLOADING, Desc, Mode, NewDesc, V1Desc, config  # noqa: E402
from medusa_vllm import contract, gate, share  # noqa: E402


class Share(unittest.TestCase):
    def test_asked(self):
        for setting, want in {"": (False, None), "elastic": (True, None), "elastic:4096": (True, 4096)}.items():
            self.assertEqual(share.asked(setting), want)
        for wrong in "fixed", "elastic:", "elastic:4k", "elastic:-1", ":1":
            with self.assertRaisesRegex(ValueError, "MEDUSA_VLLM_KV="):
                share.asked(wrong)


class Gate(unittest.TestCase):
    def test_elastic(self):
        one = config(parallel_config__distributed_executor_backend="uni")
        for release in "0.26.0", "0.26.0+cu129":
            self.assertIsNone(gate.elastic_reason(one, release))
        self.assertIn("mp", gate.elastic_reason(config(parallel_config__distributed_executor_backend="mp"), "0.26.0") or "")
        self.assertIn("0.33.0", gate.elastic_reason(one, "0.33.0") or "")
        for kind in "is_hybrid", "is_attention_free":
            states = config(parallel_config__distributed_executor_backend="uni", **{"model_config__" + kind: True})
            self.assertIn("state space", gate.elastic_reason(states, "0.26.0") or "")
        one.kv_transfer_config = OFFLOADING
        self.assertIn("connector", gate.elastic_reason(one, "0.26.0") or "")
        one.kv_transfer_config, one.model_config.enable_cumem_allocator = None, True
        self.assertIn("sleep mode", gate.elastic_reason(one, "0.26.0") or "")

    def version(self, vllm, torch, differs=None, wanted=""):
        compared = []
        with mock.patch.object(gate, "SUPPORTED", {"0.9.0": "2.9", "0.26.0": "2.11"}):
            reason = gate.version_reason(vllm, torch, lambda release: compared.append(release) or differs, wanted)
        return reason, compared

    def test_versions(self):
        self.assertEqual(self.version("0.26.0", "2.11.0+cu130"), (None, ["0.26.0"]))
        self.assertEqual(self.version("0.26.0+cu129", "2.11.1"), (None, ["0.26.0"]))
        self.assertEqual(self.version("0.9.0", "2.9.1"), (None, ["0.9.0"]))
        for torch in "2.110.0", "2.1.0":
            self.assertIn(torch, self.version("0.26.0", torch)[0] or "")

    def test_releases_that_differ(self):
        """The reason names the difference, and how to try."""
        for release in "0.26.0", "0.27.0":
            reason, compared = self.version(release, "2.11.0", "a.py:f")
            self.assertEqual(compared, ["0.26.0"])
            for word in release, "a.py:f", "MEDUSA_VLLM=try":
                self.assertIn(word, reason or "")

    def test_a_release_that_is_the_same_is_taken_for_the_one_before_it(self):
        for release in "0.26.1", "0.27.0rc1", "1.0.0":
            self.assertEqual(self.version(release, "2.11.0"), (None, ["0.26.0"]))
        self.assertEqual(self.version("0.25.9", "2.9.0"), (None, ["0.9.0"]))
        for release in "0.8.5.post1", "dev":
            self.assertEqual(self.version(release, "2.9.0"), (None, ["0.9.0"]))
        self.assertIn("2.13.0", self.version("0.26.1", "2.13.0")[0] or "")

    def test_a_user_who_tries(self):
        self.assertEqual(self.version("0.27.0", "2.13.0", "a.py:f", "try"), (None, []))
        self.assertIn("MEDUSA_VLLM=1", self.version("0.26.0", "2.11.0", None, "1")[0] or "")

    def test_supported(self):
        self.assertIsNone(gate.config_reason(config()))
        for mode in (Mode.FULL_AND_PIECEWISE, Mode.PIECEWISE, Mode.FULL):
            self.assertIsNone(gate.config_reason(config(compilation_config__cudagraph_mode=mode)))
        for method in "ngram", "ngram_gpu", "eagle", "eagle3", "mtp":
            self.assertIsNone(gate.config_reason(config(speculative_config=types.SimpleNamespace(method=method))))
        self.assertIsNone(gate.config_reason(config(lora_config=types.SimpleNamespace(enable_tower_connector_lora=False))))
        self.assertIsNone(gate.config_reason(config(kv_transfer_config=OFFLOADING)))
        self.assertIsNone(gate.config_reason(config(model_config__enable_sleep_mode=True, model_config__enable_cumem_allocator=True)))

    def test_each_reason(self):
        for change, word in [
            ({"parallel_config__enable_dbo": True}, "overlap"),
            ({"use_cumem_cudagraph_pool": True}, "sleep"),
            ({"cache_config__kv_sharing_fast_prefill": True}, "fast prefill"),
            ({"load_config__load_format": "ipc_cache"}, "another process"),
            ({"lora_config": types.SimpleNamespace(enable_tower_connector_lora=True)}, "adapters of an encoder"),
            ({"speculative_config": types.SimpleNamespace(method="dflash")}, "speculative decoding by dflash"),
            ({"speculative_config": types.SimpleNamespace(method="mtp", num_speculative_tokens_per_batch_size=[[1, 8, 2]])}, "depends on the batch"),
            ({"speculative_config": types.SimpleNamespace(method="mtp", enable_adaptive_verification=True)}, "adaptive verification"),
            ({"speculative_config": types.SimpleNamespace(method="mtp"), "lora_config": types.SimpleNamespace()}, "LoRA with a draft model"),
            ({"kv_transfer_config": types.SimpleNamespace(kv_connector="NixlConnector")}, "the KV connector NixlConnector (supported: OffloadingConnector)"),
            ({"kv_transfer_config": OFFLOADING, "model_config__enable_sleep_mode": True}, "a KV connector in sleep mode"),
            ({"model_config__enforce_eager": True}, "eager"),
            ({"model_config__enable_sleep_mode": True, "model_config__sleep_mode_backend": "other"}, "other"),
            ({"compilation_config__cudagraph_mm_encoder": True}, "graphs of an encoder"),
            ({"model_config__is_encoder_decoder": True}, "beside the decoder"),
            ({"model_config__runner_type": "pooling"}, "generate"),
            ({"compilation_config__use_inductor_graph_partition": True}, "partition"),
            ({"compilation_config__cudagraph_mode": Mode.NONE}, "NONE"),
            ({"compilation_config__cudagraph_mode": None}, "None"),
        ]:
            with self.subTest(change):
                self.assertIn(word, gate.config_reason(config(**change)) or "")

    def test_each_reason_of_ranks(self):
        def reason(vllm="0.26.0", **changes):
            changes = {"distributed_executor_backend": "mp", "world_size": 2, "pipeline_parallel_size": 1} | changes
            return gate.ranks_reason(config(**{f"parallel_config__{name}": value for name, value in changes.items()}), vllm)

        self.assertIsNone(reason())
        several = config(lora_config=object(), parallel_config__distributed_executor_backend="mp", parallel_config__world_size=2, parallel_config__pipeline_parallel_size=1)
        self.assertIn("LoRA on several ranks", gate.ranks_reason(several, "0.26.0") or "")
        self.assertIsNone(reason(world_size=1, distributed_executor_backend="uni", vllm="0.32.0"))
        for change, word in (
            ({"pipeline_parallel_size": 2}, "pipeline_parallel_size"),
            ({"prefill_context_parallel_size": 2}, "prefill_context"),
            ({"decode_context_parallel_size": 2}, "decode_context"),
            ({"nnodes": 2}, "machines"),
            ({"distributed_executor_backend": "ray"}, "executor ray (supported: mp)"),
            ({"enable_eplb": True}, "eplb"),
            ({"vllm": "0.32.0"}, "0.32.0 (supported: 0.26.0, 0.33.0)"),
        ):
            with self.subTest(change):
                self.assertIn(word, reason(**change) or "")
        with mock.patch.dict("os.environ", {contract.ENV_PEERS: "absent"}):
            self.assertIn("without the others", reason() or "")
        fused = types.SimpleNamespace(fuse_allreduce_rms=True)
        for ranks, mode, word in (2, 3, "fuse_allreduce_rms"), (1, 3, "None"), (2, 0, "None"):
            together = config(
                parallel_config__world_size=ranks, parallel_config__distributed_executor_backend="mp", parallel_config__pipeline_parallel_size=1,
                compilation_config__pass_config=fused, compilation_config__mode=mode,
            )  # fmt: skip
            self.assertIn(word, str(gate.ranks_reason(together, "0.26.0")))
        drafts = config(parallel_config__world_size=2, parallel_config__distributed_executor_backend="mp", parallel_config__pipeline_parallel_size=1, speculative_config=types.SimpleNamespace(method="eagle"))
        self.assertIn("draft model", gate.ranks_reason(drafts, "0.26.0") or "")
        asleep = config(parallel_config__world_size=2, parallel_config__distributed_executor_backend="mp", parallel_config__pipeline_parallel_size=1, model_config__enable_sleep_mode=True)
        self.assertIn("sleep", gate.ranks_reason(asleep, "0.26.0") or "")
        connected = config(parallel_config__world_size=2, parallel_config__distributed_executor_backend="mp", parallel_config__pipeline_parallel_size=1, kv_transfer_config=OFFLOADING)
        self.assertIn("connector", gate.ranks_reason(connected, "0.26.0") or "")

    def test_connector_of_the_v1_runner(self):
        self.assertIsNone(gate.runner_reason(config(), False, "0.26.0"))
        self.assertIsNone(gate.runner_reason(config(kv_transfer_config=OFFLOADING), True, "0.26.0"))
        self.assertIn("V1", gate.runner_reason(config(kv_transfer_config=OFFLOADING), False, "0.33.0") or "")

    def test_mode_that_a_backend_leaves(self):
        self.assertIsNone(gate.mode_reason(config()))
        self.assertIn("NONE", gate.mode_reason(config(compilation_config__cudagraph_mode=Mode.NONE)) or "")

    def test_first_v2_runner(self):
        for kind in "is_hybrid", "is_attention_free":
            states = config(**{"model_config__" + kind: True})
            self.assertIn("state space", gate.runner_reason(states, True, "0.26.0+cu129") or "")
            self.assertIsNone(gate.runner_reason(states, False, "0.26.0"))
            self.assertIsNone(gate.runner_reason(states, True, "0.33.0"))
        drafts = config(speculative_config=types.SimpleNamespace(method="mtp"))
        self.assertIn("mtp", gate.runner_reason(drafts, True, "0.26.0") or "")
        self.assertIsNone(gate.runner_reason(drafts, True, "0.33.0"))
        drafts.speculative_config.method = "eagle"
        self.assertIsNone(gate.runner_reason(drafts, True, "0.26.0"))

    def test_gated_delta_rules(self):
        def reason(*prefills):
            return gate.delta_reason([object(), *(types.SimpleNamespace(gdn_prefill_backend=name) for name in prefills)])

        self.assertIsNone(reason())
        self.assertIsNone(reason("triton"))
        self.assertIn("flashinfer", reason("triton", "flashinfer") or "")

    def test_backends(self):
        self.assertIsNone(gate.backend_reason(["FLASH_ATTN", "TRITON_ATTN", "TRITON_MLA", "FLASH_ATTN_MLA", "MAMBA1_ATTN", "MAMBA2_ATTN", "SHORT_CONV_ATTN"]))
        for other in "FLASHINFER", "LINEAR_ATTN":
            self.assertIn(other, gate.backend_reason(["FLASH_ATTN", other]))

    def test_graphs_within_a_model(self):
        base = type("ModelState", (), {"capture_inner_cudagraphs": lambda self: None})
        base.capture_inner_cudagraphs.__module__ = "vllm.v1.worker.gpu.model_states.interface"
        plain, own = type("Plain", (base,), {}), type("Own", (base,), {"capture_inner_cudagraphs": lambda self: None})
        runner = types.SimpleNamespace
        self.assertIsNone(gate.graphs_reason(runner()))  # of a release without such graphs
        self.assertIsNone(gate.graphs_reason(runner(model_state=plain())))
        self.assertIn("graphs within", gate.graphs_reason(runner(model_state=own())) or "")

    def test_descriptors(self):
        self.assertIsNone(gate.descriptor_reason(Desc, V1Desc, NewDesc))
        self.assertIn("shape", gate.descriptor_reason(Desc, dataclasses.make_dataclass("D", ["num_tokens", "shape"])) or "")

    def test_sizes_of_a_kv_cache(self):
        self.assertIsNone(gate.size_reason(1, 10))
        self.assertIsNone(gate.size_reason(10, 10))
        for size in 0, -1, 11:
            self.assertIn(str(size), gate.size_reason(size, 10) or "")

    def test_memory_that_captures_make(self):
        self.assertIsNone(gate.resources_reason([(0, "a")], [(0, "a")]))
        reason = gate.resources_reason([(0, "a")], [(0, "a"), (0, "b"), (1, "a")]) or ""
        self.assertTrue("'b'" in reason and "(1, 'a')" in reason and "(0, 'a')" not in reason, reason)

    def test_share_of_the_device(self):
        """As much as the artifact needs, never more than the user allows; afterwards, the user's share."""
        for needed, share in (1, 0.25), (4, 0.9), (None, 0.9):
            cache = types.SimpleNamespace(gpu_memory_utilization=0.9)
            with contextlib.suppress(ValueError), gate.asking(cache, needed, lambda: 4):
                self.assertEqual(cache.gpu_memory_utilization, share)
                raise ValueError("as vLLM does if too little is free")
            self.assertEqual(cache.gpu_memory_utilization, 0.9)


if __name__ == "__main__":
    unittest.main()
