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
        restored = graph(kernel("mix", "0"), child("1", "1"), kernel(holes.NCCL, "1/0"), kernel("mix", "2"))
        found = holes.splice({"g": restored})
        self.assertEqual([n.facts for n in found["g"].nodes], [["mix", "0"], [holes.NCCL, "1"], ["mix", "2"]])
        self.assertEqual(found["g"].nodes[1].params, {0: b"1/0"})
        self.assertEqual((holes.calls({"g": restored}), holes.calls(found)), (0, 1))

    def test_copy_and_kernel_of_a_call(self):
        copy, reduce = Node("memcpy", ["device", "8", "1"], {0: b"to", 8: b"from"}), kernel(f"vllm::{holes.CUSTOM}_1stage", "2")
        captured = Graph("0", 1, [kernel("mix", "0"), copy, reduce, kernel("mix", "3")], [("0", "1", "-"), ("1", "2", "-"), ("2", "3", "-")], None)
        inner = [holes.moved(copy, "1/0"), holes.moved(reduce, "1/1")]
        embeds = Node("child", ["child", "2", "1", "1"], {})
        restored = Graph("0", 1, [kernel("mix", "0"), embeds, *inner, kernel("mix", "2")], [("0", "1", "-"), ("1", "2", "-")], None)
        native = Graph("0", 1, [kernel("mix", "0"), holes.moved(reduce, "1"), kernel("mix", "2")], [("0", "1", "-"), ("1", "2", "-")], None)
        restored.edges.append(("1/0", "1/1", "-"))
        now = holes.spliced(restored)
        for found in holes.folded(captured), now:
            self.assertEqual([(n.kind, n.facts) for n in found.nodes], [(n.kind, n.facts) for n in native.nodes])
            self.assertEqual(found.edges, native.edges)
        self.assertEqual(holes.folded(native), native)
        for with_copies in captured, restored:
            self.assertEqual(holes.copies({"g": with_copies})["g"].nodes, [holes.moved(copy, "0")])
        self.assertEqual([holes.calls({"g": g}) for g in (captured, now, restored)], [1, 1, 0])

    def test_part_that_is_written(self):
        g = graph(Node("kernel", [holes.CUSTOM, "0"], {0: b"12345678", holes.SIGNALS: bytes(range(64))}), kernel("mix", "1"))
        first, second = holes.written({"g": g}, 2)["g"].nodes
        self.assertEqual((first.params[0], first.params[holes.SIGNALS], second.params), (b"12345678", bytes(range(16)), {0: b"1"}))

    def test_copies_on_both_sides_of_a_call(self):
        copy, reduce, back = Node("memcpy", ["device", "8", "1"], {0: b"to"}), kernel(f"{holes.SYMMETRIC[0]}<bf16>", "2"), Node("memcpy", ["device", "8", "3"], {0: b"back"})
        chain = [(str(i), str(i + 1), "-") for i in range(4)]
        captured = Graph("0", 1, [kernel("mix", "0"), copy, reduce, back, kernel("mix", "4")], chain, None)
        inner = [holes.moved(node, f"1/{i}") for i, node in enumerate((copy, reduce, back))]
        restored = Graph("0", 1, [kernel("mix", "0"), Node("child", ["child", "3", "2", "1"], {}), *inner, kernel("mix", "2")], [*chain[:2], ("1/0", "1/1", "-"), ("1/1", "1/2", "-")], None)
        now = holes.spliced(restored)
        for found in holes.folded(captured), now:
            self.assertEqual([n.facts for n in found.nodes], [["mix", "0"], [reduce.facts[0], "1"], ["mix", "2"]])
            self.assertEqual(found.edges, chain[:2])
        for with_copies in captured, restored:
            self.assertEqual(holes.copies({"g": with_copies})["g"].nodes, [holes.moved(copy, "0"), holes.moved(back, "1")])

    def test_other_embedded_graphs_stay(self):
        inside = [holes.moved(Node("memcpy", ["device", "8", ""], {}), "0/0"), kernel(holes.CUSTOM, "0/1")]
        for nodes, edges in (
            ([child("1", "0"), kernel("mix", "0/0")], []),
            ([child("2", "0"), kernel(holes.NCCL, "0/0"), kernel("mix", "0/1")], [("0/0", "0/1", "-")]),
            ([child("1", "0"), kernel(holes.CUSTOM, "0/0")], []),
            ([child("2", "0"), *inside], []),
            ([child("2", "0"), *inside], [("0/1", "0/0", "-")]),
        ):
            restored = Graph("0", 1, nodes, edges, None)
            self.assertEqual(holes.spliced(restored), restored)

    def test_calls_or_the_others(self):
        restored = {"g": graph(kernel("mix", "0"), kernel(holes.NCCL, "1"))}
        alone = {"g": graph(kernel("mix", "0"), Node("empty", ["1"], {}))}
        for calls, kinds in (False, ["kernel", "left out"]), (True, ["left out", "empty"]):
            self.assertEqual([n.kind for n in holes.only(alone, restored, calls)["g"].nodes], kinds)


if __name__ == "__main__":
    unittest.main()
