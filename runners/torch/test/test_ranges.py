"""Tests of ranges of memory with a stand-in for the driver, which fails when it is told to. They need neither torch nor a driver."""

import ctypes
import os
import sys
import types
import unittest
from unittest import mock

# Without the package around it, which needs more of torch.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python", "medusa_graphs"))
with mock.patch.dict(sys.modules, {"torch": types.ModuleType("torch")}):
    import ranges

PAGE = ranges.PAGE
SIZES, LEAST = [8 * PAGE, 8 * PAGE - 1], [1, 2]


class Driver:
    """Mappings by their address. fails: the numbers, from 1, of a function's calls that fail."""

    def __init__(self):
        self.calls, self.fails, self.mapped, self.handles, self.reserved, self.zeros = {}, {}, {}, 0, 1 << 40, 0

    def __getattr__(self, name):
        def call(*args):
            self.calls[name] = self.calls.get(name, 0) + 1
            if self.calls[name] in self.fails.get(name, ()):
                return 2
            return getattr(self, "do_" + name)(*args) or 0

        return call

    def do_cuMemAddressReserve(self, address, size, *_):
        ctypes.cast(address, ctypes.POINTER(ctypes.c_uint64))[0] = self.reserved
        self.reserved += 2 * size.value

    def do_cuMemCreate(self, *_):
        self.handles += 1

    def do_cuMemRelease(self, *_):
        self.handles -= 1

    def do_cuMemMap(self, at, size, *_):
        assert not any(a < at.value + size.value and at.value < a + n for a, n in self.mapped.items())
        self.mapped[at.value] = size.value

    def do_cuMemUnmap(self, at, size):
        assert self.mapped.pop(at.value) == size.value

    def do_cuMemSetAccess(self, at, size, *_):
        assert self.mapped[at.value] == size.value

    def do_cuMemsetD8_v2(self, at, value, size):
        assert self.mapped[at.value] == size.value and not value.value
        self.zeros += 1

    def do_cuStreamSynchronize(self, stream):
        self.zeros = 0


class TestRanges(unittest.TestCase):
    def setUp(self):
        self.driver = Driver()
        self.ranges = ranges.Ranges(SIZES, LEAST, 0, self.driver)

    def check(self, pages):
        self.assertEqual(self.ranges.pages, pages)
        self.assertEqual(sum(self.driver.mapped.values()), sum(pages) * PAGE)
        self.assertEqual(self.ranges.mapped, sum(pages) * PAGE)
        self.assertEqual((self.driver.handles, self.driver.zeros), (0, 0))

    def let_fail(self, name, *nth):
        self.driver.fails = {name: {self.driver.calls.get(name, 0) + n for n in nth}}

    def test_whole_pages_of_addresses(self):
        self.assertEqual(self.ranges.size, 16 * PAGE)
        self.check(LEAST)

    def test_sizes(self):
        for pages in [5, 6], [5, 6], [1, 2], [8, 8], [2, 7]:
            self.ranges.resize(pages)
            self.check(pages)

    def test_pages_come_to_all_by_turns(self):
        self.let_fail("cuMemMap", 4)
        self.assertRaises(MemoryError, self.ranges.move, [8, 8])
        self.check([3, 3])

    def test_failures(self):
        small, large = [2, 3], [4, 5]
        for name in "cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemsetD8_v2", "cuMemUnmap":
            before, after = (large, small) if name == "cuMemUnmap" else (small, large)
            for nth in 1, 2, 3, 4:
                self.ranges.resize(before)
                self.let_fail(name, nth)
                with self.assertRaisesRegex(MemoryError, f"^{name}: driver error 2$"):
                    self.ranges.resize(after)
                self.check(before)
                self.ranges.resize(after)
                self.check(after)

    def test_failure_of_the_way_back(self):
        self.let_fail("cuMemMap", 3)
        self.driver.fails["cuMemUnmap"] = {2}
        with self.assertRaisesRegex(MemoryError, "^cuMemMap: driver error 2, and then cuMemUnmap: driver error 2$"):
            self.ranges.resize([4, 5])
        self.assertEqual(sum(self.driver.mapped.values()), self.ranges.mapped)

    def test_blocks_in(self):
        for total, sizes, most, want in (
            (0, [PAGE], 9, 0),
            (2 * PAGE - 1, [PAGE, PAGE], 9, 0),
            (2 * PAGE, [PAGE, PAGE], 9, 1),
            (100 * PAGE, [PAGE, PAGE], 9, 9),
            (2 * PAGE, [PAGE // 4, PAGE // 4], 9, 4),
            (3 * PAGE, [PAGE // 4, PAGE // 4], 9, 4),  # a page of one layer only
            (3 * PAGE, [PAGE // 4, PAGE // 2], 9, 4),  # layers with blocks of other sizes
            (2 * PAGE, [PAGE // 4, PAGE // 2], 9, 2),
            (2 * PAGE, [2 * PAGE // 3], 9, 3),  # blocks that are no part of a page
        ):
            self.assertEqual(ranges.blocks_in(total, sizes, most), want, (total / PAGE, sizes))


if __name__ == "__main__":
    unittest.main()
