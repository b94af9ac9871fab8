"""The comparison can fail: each kind of difference between a native and a restored graph is found."""

import json
import os
import tempfile
import unittest

from compare import Comparison, read

NATIVE = {"big": 0x7F0010000000, "small": 0x7F0020000000, "pool": 0x7F0030000000}
AGAIN = {"big": 0x7E0010200000, "small": 0x7E0021000000, "pool": 0x7E0032000000}
THIRD = {"big": 0x7C0010600000, "small": 0x7C0023000000, "pool": 0x7C0036000000}
CHECKED = {"big": 0x7B0010800000, "small": 0x7B0024000000, "pool": 0x7B0038000000}
RESTORED = {"big": 0x7D0010400000, "small": 0x7D0022000000, "pool": 0x7D0034000000}


def word(v):
    return v.to_bytes(8, "little").hex()


class Process:
    """One made-up process: two allocations with tensors in them, one without, and a graph of one kernel and one fill."""

    def __init__(self, at, garbage, index=2):
        self.at = at
        self.words = [at["big"] + 512, at["pool"] + 64, 42, garbage]
        self.name, self.grid, self.edge, self.dst = "k", "1,1,1", "0\t1\t0,0,0", at["small"]
        self.module, self.window, self.pitch, self.event = "00ff", at["big"] + 64, 16, 3
        self.sizes = {"big": 1 << 20, "small": 4096, "pool": 1 << 16}
        self.index = {"big": 0, "small": 1, "pool": index}
        self.restored = {}
        self.mappings = {}  # sizes of the pieces that an allocation is mapped in
        self.tensors = {"weights": (at["big"], 1 << 20), "input": (at["small"], 64)}

    def graphs(self):
        lines = [f"alloc\t0\t{self.index[n]}\tdevice\t{self.at[n]:#x}\t{self.sizes[n]}" for n in self.at if n not in self.mappings]
        for n, sizes in self.mappings.items():
            starts = [self.at[n] + sum(sizes[:i]) for i in range(len(sizes))]
            lines += [f"alloc\t0\t{100 + i}\tvmm\t{at:#x}\t{size}" for i, (at, size) in enumerate(zip(starts, sizes))]
        params = ",".join(f"{8 * i}:{word(w)}" for i, w in enumerate(self.words[:2]))
        struct = "".join(word(w) for w in self.words[2:])
        lines += [
            "instance\t0\t1\t2\t1\t0\t0x10",
            f"instance-node\t0\t1\t0\tkernel\t{self.name}\t{self.module}\t{self.grid}\t32,1,1\t0\t{params},16:{struct}\twindow {self.window:#x}\tmax_dynamic_shared=1",
            f"instance-node\t0\t1\t1\tmemset\t{self.dst:#x}\t0\t0\t1\t64\t1",
            f"event\t0\t{self.event}\t0xe0",
            "instance-node\t0\t1\t2\tchild\t2\t0",
            "instance-node\t0\t1\t2/0\tevent-record\t0xe0",
            f"instance-node\t0\t1\t2/1\tmemcpy\t{self.dst:#x}\t0,0,0,16,1\t{self.at['big']:#x}\t0,0,0,{self.pitch},1\t16\t1\t1",
            f"instance-edge\t0\t1\t{self.edge}",
        ]
        with tempfile.TemporaryDirectory() as folder:
            truth, tensors = os.path.join(folder, "truth"), os.path.join(folder, "tensors")
            with open(truth, "w", encoding="utf-8") as f:
                f.write("\n".join(lines) + "\n")
            with open(tensors, "w", encoding="utf-8") as f:
                json.dump({"tensors": self.tensors, "restored": self.restored, "captured": ["decode-1"]}, f)
            return read(truth, tensors, expandable=bool(self.mappings))


def compare(change=lambda p: None, natives=lambda *p: None, more=()):
    """natives changes two processes that were compiled, one that was not recorded, and more."""
    first, second, third = Process(NATIVE, 0x1111111111111111), Process(AGAIN, 0x2222222222222222), Process(THIRD, 0x3333333333333333)
    restored = Process(RESTORED, 0, index=5)
    natives(first, second, third, *more)
    change(restored)
    c = Comparison()
    c.run([p.graphs() for p in (first, second, third, *more)], restored.graphs())
    return c


def set_word(i, v):
    return lambda p: p.words.__setitem__(i, v(p) if callable(v) else v)


class TestComparison(unittest.TestCase):
    def test_equal(self):
        c = compare()
        self.assertEqual(c.differences, [])
        self.assertEqual((c.graphs, c.nodes, c.third_party, c.pointers), (1, 5, 1, 6))

    def test_differences(self):
        changes = {
            "another graph": lambda p: setattr(p, "restored", {2: 0x10}),
            "another kernel": lambda p: setattr(p, "name", "k2"),
            "another module": lambda p: setattr(p, "module", "00fe"),
            "a window elsewhere": lambda p: setattr(p, "window", p.at["big"] + 128),
            "a window over other memory": lambda p: setattr(p, "window", p.at["pool"] + 64),
            "another pitch": lambda p: setattr(p, "pitch", 32),
            "another event": lambda p: setattr(p, "event", 4),
            "another grid": lambda p: setattr(p, "grid", "2,1,1"),
            "another edge": lambda p: setattr(p, "edge", "1\t0\t0,0,0"),
            "another edge type": lambda p: setattr(p, "edge", "0\t1\t1,0,1"),
            "another constant": set_word(2, 43),
            "padding that holds something": set_word(3, 5),
            "another offset in a tensor": set_word(0, lambda p: p.at["big"] + 520),
            "another tensor": set_word(0, lambda p: p.at["small"]),
            "an address of the native process": set_word(0, NATIVE["big"] + 512),
            "another offset in unnamed memory": set_word(1, lambda p: p.at["pool"] + 128),
            "unnamed memory of another size": lambda p: p.sizes.__setitem__("pool", 1 << 15),
            "a constant that became an address": set_word(2, lambda p: p.at["pool"]),
            "another destination": lambda p: setattr(p, "dst", p.at["small"] + 32),
            "a tensor that moved": lambda p: p.tensors.__setitem__("weights", (p.at["big"] + 256, 1 << 19)),
        }
        for name, change in changes.items():
            with self.subTest(name):
                self.assertTrue(compare(change).differences)

    def test_address_of_the_host(self):
        """A parameter that is an address of the host's own memory: restored is another word, no address and not zero."""
        own = [0x7FFE5BEBCF00, 0x7FFE56D7BB40, 0x7FFC00001230]

        def differences(restored, words=tuple(own)):
            natives = [Process(at, 0x1111 * i) for i, at in enumerate((NATIVE, AGAIN, THIRD))]
            z = Process(RESTORED, 0)
            for process, word_ in zip([*natives, z], [*words, restored]):
                process.words[1] = word_
            c = Comparison()
            c.run([n.graphs() for n in natives], z.graphs())
            return len(c.differences)

        self.assertEqual(differences(0x6D65647573610001), 0)
        self.assertGreater(differences(0), 0)
        self.assertGreater(differences(RESTORED["pool"] + 8), 0)
        self.assertGreater(differences(0x6D65647573610001, (own[0], own[0], own[2])), 0)

    def test_mappings_side_by_side(self):
        """Memory that is mapped piece by piece is one range, with any sizes of pieces."""

        def mapped(*sizes):
            return lambda p: p.mappings.update(pool=sizes)

        natives = lambda *processes: [mapped(1 << 15, 1 << 15)(p) for p in processes]
        self.assertEqual(compare(mapped(1 << 16), natives).differences, [])
        self.assertEqual(compare(mapped(1 << 14, 3 << 14), natives).differences, [])
        self.assertTrue(compare(mapped(1 << 15), natives).differences)

    def left_behind(self, offsets, restored, memory="pool", more=()):
        """Remains of earlier calls on a stack, in the last word of the struct: offsets in memory, None for no address."""

        def natives(*processes):
            for p, offset in zip(processes, offsets):
                if offset is not None:
                    p.words[3] = p.at[memory] + offset

        return compare(set_word(3, restored), natives, more)

    def test_left_behind(self):
        address = lambda p: p.at["pool"] + 32
        self.assertEqual(self.left_behind([32, 32, None], address).differences, [])
        self.assertEqual(self.left_behind([32, None, None], 0).differences, [])
        self.assertEqual(self.left_behind([32, 32, None], 32).differences, [])  # the bytes that both addresses have in common
        self.assertEqual(self.left_behind([32, 32, None], 0).differences, [])  # left out, because the memory was free
        self.assertTrue(self.left_behind([32, 32, None], 0, memory="big").differences)  # a tensor with a name
        self.assertTrue(self.left_behind([32, 32, None], 5).differences)
        self.assertTrue(self.left_behind([32, 32, 32], 0).differences)
        self.assertTrue(self.left_behind([32, 32, 32], 32).differences)
        self.assertTrue(self.left_behind([32, 32, None], lambda p: p.at["pool"] + 40).differences)
        self.assertTrue(self.left_behind([32, None, 32], address).differences)
        self.assertEqual(self.left_behind([32, 40, None], 0).differences, [])
        self.assertTrue(self.left_behind([32, 40, 32], 0).differences)
        self.assertTrue(self.left_behind([32, 40, None], address).differences)
        self.assertTrue(self.left_behind([32, 40, 32], address).differences)

    def test_another_recorded_process(self):
        """Values that it does not have in common with the others are left out."""
        address = lambda p: p.at["big"] + 32
        checked = lambda: [Process(CHECKED, 0x4444444444444444)]
        for offset in (40, None):
            self.assertEqual(self.left_behind([32, 32, None, offset], 0, "big", checked()).differences, [])
            self.assertTrue(self.left_behind([32, 32, None, offset], address, "big", checked()).differences)
            self.assertTrue(self.left_behind([32, 32, None, offset], 32, "big", checked()).differences)
        self.assertEqual(self.left_behind([32, 32, 32, 40], 0, "big", checked()).differences, [])
        self.assertTrue(self.left_behind([32, 32, 32, 40], 32, "big", checked()).differences)
        self.assertEqual(self.left_behind([32, 32, None, 32], address, "big", checked()).differences, [])
        self.assertTrue(self.left_behind([32, 32, None, 32], 0, "big", checked()).differences)
        self.assertEqual(self.left_behind([32, 40, 32, 48], 0, "big", checked()).differences, [])
        self.assertTrue(self.left_behind([32, 40, 32, 48], 5, "big", checked()).differences)
        self.assertEqual(self.left_behind([32, 40, 48, 56], 0x10000000, "big", checked()).differences, [])  # bytes that are alike by chance
        self.assertTrue(self.left_behind([32, 40, 48, 56], 0x11000000, "big", checked()).differences)
        self.assertTrue(self.left_behind([32, 40, 48, 32], 0x10000000, "big", checked()).differences)
        self.assertTrue(self.left_behind([32, 40, 32, 48], address, "big", checked()).differences)
        self.assertTrue(self.left_behind([32, 40, 32, 32], 0, "big", checked()).differences)
        self.assertTrue(self.left_behind([32, 40, 32, 40], 0, "big", checked()).differences)
        pool = lambda p: p.at["pool"] + 32
        self.assertEqual(self.left_behind([40, 32, 32, 32], 0, "pool", checked()).differences, [])
        self.assertTrue(self.left_behind([40, 32, 32, 32], pool, "pool", checked()).differences)
        self.assertTrue(self.left_behind([40, 32, 32, 32], 5, "pool", checked()).differences)
        self.assertTrue(self.left_behind([32, 32, 32, 32], 0, "pool", checked()).differences)
        with_byte = lambda byte: lambda *processes: [p.words.__setitem__(3, b) for p, b in zip(processes, (7, 7, 0, byte))]
        self.assertEqual(compare(set_word(3, 0), with_byte(9), checked()).differences, [])
        self.assertTrue(compare(set_word(3, 7), with_byte(9), checked()).differences)
        self.assertEqual(compare(set_word(3, 7), with_byte(7), checked()).differences, [])


if __name__ == "__main__":
    unittest.main()
