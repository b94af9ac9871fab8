"""Tests of run.py's comparisons besides those of graphs. They need neither vLLM nor torch."""

import sys
import types
import unittest
from unittest import mock

import run
from compare import Comparison
from failing_ranks import reasons


def call(function, *facts):
    return "\t".join(["7", "12", "0", function, "CUDA_SUCCESS", *facts]) + "\n"


def launch(handle, nodes=5):
    return call("cuGraphLaunch", "stream=2", f"exec={handle}", f"nodes={nodes}")


class TestLaunches(unittest.TestCase):
    LABELS = {0x10: "decode 1", 0x20: "decode 2"}

    def test_labels(self):
        log = [launch("0x10"), "mark\trequests\n", launch("0x20"), call("cuLaunchKernel", "kernel=k"), launch("0x10")]
        self.assertEqual(run.launches(log, self.LABELS), ["decode 2", "decode 1"])

    def test_equal_counts_of_nodes_are_not_enough(self):
        """Two graphs with as many nodes that change places are two lists."""
        there, here = ["mark\trequests\n", launch("0x10"), launch("0x20")], ["mark\trequests\n", launch("0x20"), launch("0x10")]
        self.assertNotEqual(run.launches(there, self.LABELS), run.launches(here, self.LABELS))

    def test_unknown_handle(self):
        self.assertEqual(run.launches(["mark\trequests\n", launch("0x30")], self.LABELS), ["0x30"])

    def test_no_mark(self):
        self.assertIsNone(run.launches([launch("0x10")], self.LABELS))


class TestCases(unittest.TestCase):
    @staticmethod
    def chosen(*options):
        needed = "--python p --libraries l --build b --work w".split()
        with mock.patch.object(sys, "argv", ["run.py", *needed, *options]):
            return run.chosen(run.arguments())

    def test_usual(self):
        cases = self.chosen()
        self.assertEqual((len(cases), len(set(cases))), (12, 12))

    def test_few(self):
        """As rules.mk asks of releases between the oldest and the newest."""
        cases = self.chosen("--models", "llama,qwen2-moe", "--pieces", "FULL_AND_PIECEWISE")
        self.assertEqual((len(cases), len(set(cases))), (6, 6))

    def test_every(self):
        cases = self.chosen("--every", "--models", "llama,qwen3,mistral,qwen2-moe")
        self.assertEqual((len(cases), len(set(cases))), (48, 48))
        self.assertTrue(set(self.chosen("--models", "llama,qwen3,mistral,qwen2-moe")) < set(cases))


class TestListed(unittest.TestCase):
    def test_of_one_runner(self):
        """A change that may be absent on the V1 runner is still demanded of the V2 runner."""
        text = "# comment\n\n*.a[*]\nV1 *.b\n"
        with mock.patch.object(run, "open", mock.mock_open(read_data=text), create=True):
            self.assertEqual((run.listed("V1"), run.listed("V2")), (["*.a[*]", "*.b"], ["*.a[*]"]))


class TestResults(unittest.TestCase):
    def differences(self, native, restored):
        """Graphs say that the native process's memory a is x here, and b is y."""
        c, form = Comparison(), ("", [4], [1], "torch.float16")
        for a, b in (("a", "x"), ("b", "y")):
            c.place("graph", run.NATIVE, ("memory", a, 0, 4096), ("memory", b, 0, 4096))
        case = types.SimpleNamespace(name="case")
        run.Case.compare_results(case, c, {"0 1": [(form, native)]}, {"0 1": [(form, restored)]})
        return c.differences

    def test_same_memory(self):
        self.assertEqual(self.differences(("memory", "a", 512, 4096), ("memory", "x", 512, 4096)), [])

    def test_same_place_in_other_memory(self):
        self.assertTrue(self.differences(("memory", "a", 512, 4096), ("memory", "y", 512, 4096)))

    def test_other_place(self):
        self.assertTrue(self.differences(("memory", "a", 512, 4096), ("memory", "x", 1024, 4096)))

    def test_tensor(self):
        self.assertTrue(self.differences(("tensor", "kv", 0), ("memory", "x", 0, 4096)))


class TestReasons(unittest.TestCase):
    """Of a start in which rank 1 fails."""

    @staticmethod
    def told(*lines):
        return reasons("".join(f"(Worker pid=7) medusa: native start: {line}\n" for line in lines), 1)

    def test_one_cause(self):
        self.assertEqual(self.told("driver_error: no memory", "driver_error: rank 1 starts natively: no memory", "engine_ended: exit status 1"), ({"driver_error: no memory"}, {1}))

    def test_two_causes(self):
        self.assertEqual(len(self.told("driver_error: no memory", "engine: rank 1 did not reach built within 6s")[0]), 2)

    def test_another_rank_is_blamed(self):
        self.assertEqual(self.told("engine: rank 0 did not reach built within 6s")[1], {0})

    def test_the_engine_ended(self):
        self.assertEqual(self.told("engine_ended: exit status 1"), (set(), set()))


if __name__ == "__main__":
    unittest.main()
