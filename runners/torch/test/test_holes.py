"""Tests of the comparison of collective calls: the nodes that may stand for a call in a restored graph."""

import unittest

import holes
from compare import Graph, Node


def kernel(name, at):
    return Node("kernel", [name, at], {0: at.encode()})


def child(nodes, at):
    return Node("child", ["child", nodes, "0", at], {})


def graph(*nodes):
    return Graph("0", 1, list(nodes), [], None)


class Holes(unittest.TestCase):
    def test_call_in_its_place(self):
        restored = graph(kernel("mix", "0"), child("1", "1"), kernel(holes.COMMUNICATOR, "1/0"), kernel("mix", "2"))
        found = holes.splice({"g": restored})
        self.assertEqual([n.facts for n in found["g"].nodes], [["mix", "0"], [holes.COMMUNICATOR, "1"], ["mix", "2"]])
        self.assertEqual(found["g"].nodes[1].params, {0: b"1/0"})
        self.assertEqual((holes.calls({"g": restored}), holes.calls(found)), (0, 1))

    def test_other_embedded_graphs_stay(self):
        for nodes in ([child("1", "0"), kernel("mix", "0/0")], [child("2", "0"), kernel(holes.COMMUNICATOR, "0/0"), kernel("mix", "0/1")]):
            restored = graph(*nodes)
            self.assertEqual(holes.spliced(restored), restored)


if __name__ == "__main__":
    unittest.main()
