"""Tests of the outcomes that architectures.py finds. They need neither vLLM nor torch."""

import json
import os
import types
import unittest

import architectures

REFUSED = "medusa: run engine (profile): exit status 3\n... its end:\nmedusa: record engine: state space layers\n"
OWN = """Traceback (most recent call last):
  File "/x/build/lib/python/medusa_vllm/worker.py", line 9, in load_model
    weights(None)
AttributeError: 'NoneType' object has no attribute 'named_parameters'
"""
VLLM = OWN.replace("    weights(None)\n", '    super().load_model()\n  File "/x/site-packages/vllm/model_executor/models/x.py", line 9, in load\n    f()\n')
RESULTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "docs", "results", "vllm-architectures")


class Outcome(unittest.TestCase):
    def test_each(self):
        self.assertEqual(architectures.outcome(0, "medusa: wrote x.medusa"), {"outcome": "restored"})
        self.assertEqual(architectures.outcome(1, REFUSED), {"outcome": "native", "reason": "state space layers"})
        self.assertIsNone(architectures.outcome(1, VLLM))

    def test_an_exception_of_the_plugin(self):
        """It counts with any exit code."""
        for code in 0, 1:
            self.assertEqual(architectures.outcome(code, OWN)["outcome"], "exception")
        self.assertIn("named_parameters", architectures.outcome(1, OWN)["reason"])


class Without(unittest.TestCase):
    """An engine that Medusa could not materialize has to fail without it as well."""

    def result(self, code, stock, output):
        case = types.SimpleNamespace(command=["engine"], go=lambda step, *command, **variables: (code, stock))
        return architectures.Architecture.without(case, output)

    def test_vllm_fails_as_well(self):
        self.assertEqual(self.result(1, VLLM, VLLM)["outcome"], "absent")

    def test_only_with_medusa(self):
        self.assertEqual(self.result(0, "", VLLM)["outcome"], "exception")
        self.assertEqual(self.result(0, "", "no word")["outcome"], "exception")

    def test_verification_refuses(self):
        self.assertEqual(self.result(0, "", "medusa: verify artifact: x differs\n"), {"outcome": "native", "reason": "verify artifact: x differs"})


class Verdict(unittest.TestCase):
    def test_each(self):
        self.assertEqual(architectures.of_verdict("takes part"), {"outcome": "expected"})
        self.assertEqual(architectures.of_verdict("vLLM: no class"), {"outcome": "absent", "reason": "no class"})
        self.assertEqual(architectures.of_verdict("a multimodal model"), {"outcome": "native", "reason": "a multimodal model"})


class Page(unittest.TestCase):
    def test_the_page_is_made_of_the_results(self):
        with open(RESULTS + ".json", encoding="utf-8") as f:
            held = json.load(f)
        with open(RESULTS + ".md", encoding="utf-8") as f:
            self.assertEqual(f.read(), architectures.render(held))
        named = [row for row in held["cases"].values() if row["outcome"] in ("restored", "native", "expected")]
        self.assertGreaterEqual(len(named), 40)
        self.assertNotIn("exception", [row["outcome"] for row in held["cases"].values()])


if __name__ == "__main__":
    unittest.main()
