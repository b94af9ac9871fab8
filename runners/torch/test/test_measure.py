"""The conclusions of measure.py from the reports of starts. Needs neither torch nor a device."""

import argparse
import copy
import os
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))

import measure  # noqa: E402


def start(capture):
    ends = {"structure": (1.0, 2.0), "weights": (2.0, 5.0), "kv_cache": (3.0, 4.0), "capture": (5.0, 5.0 + capture)}
    return {
        "graphs": 2, "kv_bytes": 1 << 30, "stages": [{"name": n, "began": b, "ended": e} for n, (b, e) in ends.items()],
        "logits": {"1": "aa", "8": "bb"}, "tokens": {"1": [[1]], "8": [[2]]}, "replays": {"1": 0.01, "8": 0.02},
    }


class TestMeasure(unittest.TestCase):
    def setUp(self):
        out = self.enterContext(tempfile.TemporaryDirectory())
        args = argparse.Namespace(out=out, bundle=out, python="python", budget=1.0, tokens=4, replays=4)
        self.shape = measure.Shape(measure.Run(args), "llama2-7b:layers=2:max-length=16")
        self.shape.starts |= {"native": [start(4.0), start(6.0)], "restored": [start(0.5), start(0.5)], "no-graphs": [start(0.0)]}

    def conclude(self, simulated=False):
        reports = [self.shape.report()]
        return reports[0], *measure.verdict(reports, [], simulated)

    def test_equal(self):
        report, lines, equal = self.conclude()
        self.assertTrue(equal, lines)
        self.assertEqual(report["stages"]["native"], {"structure": 1.0, "weights": 3.0, "tokenizer": 0.0, "kv_cache": 1.0, "capture": 5.0, "loading": 9.0})
        self.assertIn("2 restored bit for bit (2 native again), 2 token for token, 2 as eager; capture 5.000 s, restored 0.500 s (10.0 times)", lines[0])
        self.assertIn("layers=2", lines[0].replace(" ", "="))
        self.assertIn("restored", measure.table([report]))

    def test_differences(self):
        for mode, what in (("restored", "logits"), ("restored", "tokens"), ("no-graphs", "tokens")):
            before = copy.deepcopy(self.shape.starts)
            self.shape.starts[mode][-1][what]["8"] = "another"
            self.assertFalse(self.conclude()[2], (mode, what))
            self.assertTrue(self.conclude(simulated=True)[2])
            self.shape.starts = before

    def test_not_restored(self):
        self.shape.starts["restored"] = []
        _, lines, equal = self.conclude(simulated=True)
        self.assertFalse(equal)
        self.assertIn("not restored", lines[0])

    def test_no_time_for_a_shape(self):
        self.shape.run.args.shape = ["llama2-7b"]
        self.shape.run.args.rounds = 1
        self.shape.run.args.budget = 0.0
        _, missing = self.shape.run.shapes()
        self.assertEqual(missing, ["llama2-7b: " + s for s in ("model", "native-1", "restored-1", "no-graphs-1", "async-1", "kv-only-1")])

    def test_nothing(self):
        self.assertFalse(measure.verdict([], ["llama2-7b: materialize"], True)[1])

    def test_replay_is_the_fastest_round(self):
        self.shape.starts["restored"][0]["replays"] = {"1": 0.02, "8": 0.04}
        self.assertEqual(self.shape.replay(), 1.0)
        self.shape.starts["restored"][1]["replays"] = {"1": 0.02, "8": 0.04}
        self.assertEqual(self.shape.replay(), 2.0)

    def test_no_time(self):
        self.shape.run.args.budget = 0
        with self.assertRaises(measure.OutOfTime):
            self.shape.start("native")


if __name__ == "__main__":
    unittest.main()
