"""Tests of how many tokens of a request a step computes."""

import os
import sys
import types
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from medusa_vllm import queries  # noqa: E402


def config(mode="FULL_DECODE_ONLY", sizes=(8, 15), drafts=None, requests=8):
    return types.SimpleNamespace(
        speculative_config=drafts and types.SimpleNamespace(num_speculative_tokens=drafts),
        scheduler_config=types.SimpleNamespace(max_num_seqs=requests),
        compilation_config=types.SimpleNamespace(cudagraph_mode=types.SimpleNamespace(name=mode), cudagraph_capture_sizes=list(sizes)),
    )


class Queries(unittest.TestCase):
    def test_decode_steps(self):
        self.assertEqual([queries.width(config()), queries.width(config(drafts=3))], [1, 4])
        self.assertEqual([queries.longest(config()), queries.longest(config(drafts=3))], [1, 4])

    def test_graphs_for_any_step(self):
        """Of 15 tokens of 8 requests, the last has the remaining 8. Of 64, each has 8."""
        for sizes, most in {(8, 15): 8, (64,): 8, (4,): 1, (): 1}.items():
            self.assertEqual(queries.longest(config("FULL", sizes)), most, sizes)
        self.assertEqual(queries.longest(config("FULL", (8,), drafts=3)), 4)

    def test_starts(self):
        def of(tokens, requests):
            return queries.starts(5, types.SimpleNamespace(num_tokens=tokens, num_reqs=requests))

        self.assertEqual(queries.starts(3), [0, 1, 2])
        self.assertEqual(of(12, 3), [0, 4, 8, 12, 12])
        self.assertEqual(of(3, None), [0, 1, 2, 3, 3])


if __name__ == "__main__":
    unittest.main()
