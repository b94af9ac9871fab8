"""Tests of several engines of one start. They need neither vLLM nor torch."""

import os
import sys
import types
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from doubles import config  # noqa: E402
from medusa_vllm import engines, gate, platform  # noqa: E402

DENSE = {
    "data_parallel_size": 2, "data_parallel_size_local": 2, "data_parallel_external_lb": False, "data_parallel_hybrid_lb": False,
    "data_parallel_backend": "mp", "assigned_physical_gpu_ids": None,
}  # fmt: skip


def parallel(is_moe=False, **changes):
    return config(model_config__is_moe=is_moe, **{f"parallel_config__{name}": value for name, value in (DENSE | changes).items()})


class Reasons(unittest.TestCase):
    def test_each_reason(self):
        self.assertIsNone(gate.engines_reason(parallel(), "0.26.0", "restore"))
        for change, run, word in (
            ({}, "profile", "leave data_parallel_size out"),
            ({}, "check-restored", "leave data_parallel_size out"),
            ({"is_moe": True}, "restore", "share experts (data_parallel_size)"),
            ({"world_size": 4}, "restore", "engines of 4 ranks each"),
            ({"data_parallel_external_lb": True}, "restore", "several commands"),
            ({"data_parallel_hybrid_lb": True}, "restore", "several commands"),
            ({"data_parallel_size_local": 1}, "restore", "several machines"),
            ({"data_parallel_backend": "ray"}, "restore", "engines under ray"),
            ({"assigned_physical_gpu_ids": [1, 0]}, "restore", "device_ids"),
        ):
            with self.subTest(change, run=run):
                self.assertIn(word, gate.engines_reason(parallel(**change), "0.26.0", run) or "")
        self.assertIn("0.28.0", gate.engines_reason(parallel(), "0.28.0", "restore") or "")


class Engines(unittest.TestCase):
    def setUp(self):
        changed = mock.patch.dict(os.environ)
        changed.start()
        self.addCleanup(changed.stop)
        for name in "MEDUSA_ENGINES", "MEDUSA_ENGINE", "MEDUSA_VLLM_STAYS_OUT", "MEDUSA_RUN":
            os.environ.pop(name, None)

    def choose(self, chosen, run="restore"):
        """Whether the engines take part, and why not."""
        said = []
        os.environ["MEDUSA_RUN"] = run
        with mock.patch.object(platform.metadata, "version", lambda name: "0.26.0"):
            return platform.choose_engines(chosen, said.append), " ".join(said)

    def test_one_engine(self):
        for run in "restore", "profile":
            self.assertEqual(self.choose(config(), run), (True, ""))
        self.assertFalse(engines.several())

    def test_several_engines_know_their_number(self):
        self.assertEqual(self.choose(parallel()), (True, ""))
        self.assertEqual(os.environ["MEDUSA_ENGINES"], "2")
        # As vLLM leaves it in the second engine.
        inside = types.SimpleNamespace(data_parallel_size=1, data_parallel_index=1, data_parallel_rank_local=1, world_size=1)
        engines.enter(inside)
        self.assertEqual(os.environ["MEDUSA_ENGINE"], "1")
        self.assertEqual((engines.device(0, inside), engines.own_file("x", inside)), (1, "x.1"))

    def test_one_engine_has_no_place(self):
        inside = types.SimpleNamespace(data_parallel_size=1, data_parallel_index=0, data_parallel_rank_local=None, world_size=2)
        engines.enter(inside)
        self.assertNotIn("MEDUSA_ENGINE", os.environ)
        self.assertEqual((engines.device(1, inside), engines.own_file("x", inside)), (1, "x"))

    def test_a_refusal_is_said_once(self):
        takes_part, said = self.choose(parallel(is_moe=True))
        self.assertFalse(takes_part)
        self.assertIn("share experts", said)
        self.assertNotIn("MEDUSA_ENGINES", os.environ)
        os.environ["MEDUSA_VLLM_STAYS_OUT"] = "1"  # as platform.native leaves it
        self.assertEqual(self.choose(parallel(is_moe=True)), (False, ""))

    def test_nothing_is_said_where_nothing_was_asked(self):
        self.assertEqual(self.choose(parallel(is_moe=True), run=""), (False, ""))
        self.assertEqual(self.choose(parallel(), run=""), (True, ""))


if __name__ == "__main__":
    unittest.main()
