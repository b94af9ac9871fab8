"""Tests of labels, of how long restored graphs are used, and of vLLM's factories. They need neither vLLM nor torch."""

import os
import sys
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from doubles import Desc, Mode, NewDesc, V1Desc  # noqa: E402
from medusa_vllm import factories, labels, use, watched  # noqa: E402


class Graph:
    def __init__(self, desc):
        self.label, self.good = labels.label(desc), True

    def usable(self):
        return self.good


def restored(*descs):
    return [Graph(d) for d in descs]


class Labels(unittest.TestCase):
    one, two = Desc(Mode.FULL, 1, 1), Desc(Mode.FULL, 2, 2)

    def test_match(self):
        graphs = restored(self.two, self.one)
        found = labels.match(map(labels.label, [self.one, self.two]), graphs)
        self.assertIs(found[labels.label(self.two)], graphs[0])
        self.assertIs(found[labels.label(self.one)], graphs[1])

    def test_any_difference_is_refused(self):
        for graphs in (restored(self.one), restored(self.one, self.two, Desc(Mode.FULL, 4, 4)), restored(self.one, Desc(Mode.FULL, 2, 1))):
            with self.assertRaises(labels.KeysDiffer):
                labels.match([labels.label(self.one), labels.label(self.two)], graphs)

    def test_descriptors_of_the_v1_runner(self):
        one, two = V1Desc(1, 1), V1Desc(2, 2)
        self.assertNotEqual(labels.label(one), labels.label(self.one))
        parts = {name(i, desc) for name in (labels.piece, labels.segment) for i, desc in ((0, one), (1, one), (0, two))}
        self.assertEqual(len({labels.label(one), labels.label(two)} | parts), 8)

    def test_fields_of_newer_releases(self):
        descs = [NewDesc(Mode.FULL, 2, 2), NewDesc(Mode.FULL, 2, 2, max_query_len=2), NewDesc(Mode.FULL, 2, 2, num_ubatches=2)]
        self.assertEqual(len(set(map(labels.label, descs))), 3)
        self.assertEqual(labels.label(self.two), "FULL tokens=2 requests=2 uniform=1 loras=0")
        self.assertLess(len(labels.label(NewDesc(Mode.FULL, 99999, 99999, 99999, 99999, 99999, 99999))), 128)

    def test_a_label_fits_into_the_interface(self):
        self.assertLess(len(labels.piece(9999, V1Desc(99999, 99999))), 128)


class Session:
    """One that restores, and notes the calls that it gets."""

    restoring = True

    def __init__(self, *descs):
        self.found, self.told = restored(*descs), []

    def graphs(self):
        return self.found

    def __getattr__(self, name):
        return lambda *said: self.told.append((name, *said)) or "why"


class Uses(unittest.TestCase):
    one, two = Desc(Mode.FULL, 1, 1), Desc(Mode.FULL, 2, 2)

    def restore(self, *descs):
        session = Session(self.one, self.two)
        u = use.Use(session)
        return session, u, u.restore(lambda: map(labels.label, descs), self.installed.append)

    def setUp(self):
        self.installed = []

    def test_restored_graphs_are_used_until_dropped(self):
        session, u, restored = self.restore(self.one, self.two)
        self.assertTrue(restored and u.restored and u.usable())
        self.assertEqual([found.keys() for found in self.installed], [{labels.label(self.one), labels.label(self.two)}])
        with mock.patch("sys.stderr"):
            u.drop("sleep")
            u.drop("sleep")
        self.assertFalse(u.usable())
        self.assertEqual(session.told, [("phase", "capture"), ("invalidate", "sleep")])

    def test_asleep_they_are_not_used_and_not_dropped(self):
        session, u, _ = self.restore(self.one, self.two)
        u.asleep = True
        session.found[0].good = False
        self.assertFalse(u.usable())
        u.asleep, session.found[0].good = False, True
        self.assertTrue(u.usable() and session.told == [("phase", "capture")])

    def test_what_they_refer_to_is_gone(self):
        session, u, _ = self.restore(self.one, self.two)
        session.found[0].good = session.found[1].good = False
        with mock.patch("sys.stderr"):
            self.assertFalse(u.usable())
        self.assertEqual(session.told[1:], [("reason",), ("invalidate", "why")])

    def test_other_graphs_are_refused(self):
        session, u, restored = self.restore(self.one)
        self.assertFalse(restored or u.restored or u.graphs or self.installed)
        self.assertEqual([name for name, *_ in session.told], ["phase", "refuse"])

    def test_what_cannot_be_installed_is_refused(self):
        session = Session(self.one)
        u = use.Use(session)
        self.assertFalse(u.restore(lambda: [labels.label(self.one)], lambda graphs: [][0]) or u.restored or u.graphs)
        self.assertEqual([name for name, *_ in session.told], ["phase", "refuse"])

    def test_phase_begins_once(self):
        """A restore that cannot be used is followed by captures."""
        session, u, restored = self.restore(self.one)
        self.assertFalse(restored)
        u.begin_capture()
        self.assertEqual([said for said in session.told if said[0] == "phase"], [("phase", "capture")])

    def test_nothing_is_restored(self):
        """The phase then begins with the captures, and the session is not asked for graphs."""
        session = Session(self.one)
        session.restoring = False
        u = use.Use(session)
        self.assertFalse(u.restore([labels.label(self.one)], self.installed.append) or self.installed or session.told)

    def test_captured_graphs_are_used(self):
        self.assertTrue(use.Use(Session()).usable())


class Factories(unittest.TestCase):
    def test_as_vllm_calls_them(self):
        """Twice for each whole step and for breakable graphs, once for pieces; whole steps last; and no forward runs."""
        called = []

        def create(desc, warmup):
            called.append((desc.cg_mode.name, desc.num_tokens, warmup))
            return lambda mode: self.fail("a forward")

        descs = {m: [Desc(m, 2, 2), Desc(m, 1, 1)] for m in (Mode.FULL, Mode.PIECEWISE)}
        factories.call(descs, create)
        pieces = [("PIECEWISE", 2, True), ("PIECEWISE", 1, True)]
        whole = [("FULL", 2, True), ("FULL", 2, False), ("FULL", 1, True), ("FULL", 1, False)]
        self.assertEqual(called, [*pieces, *whole])
        called.clear()
        factories.call(descs, create, breakable=True)
        self.assertEqual(called, [("PIECEWISE", *more) for _, *more in whole] + whole)

    def test_one_mode(self):
        called = []
        factories.call({Mode.PIECEWISE: [Desc(Mode.PIECEWISE, 1, 1)]}, lambda desc, warmup: called.append(warmup))
        self.assertEqual(called, [True])


class Watches(unittest.TestCase):
    def test_what_changes(self):
        held = {"weight": b"1", "length": b"1", "flag": b"1"}
        w = watched.Watched({name: name for name in held}, held.get)
        w.look()
        self.assertEqual(w.changed, set())
        for flag in (b"2", b"1"):  # as it was, in the end
            held["flag"] = flag
            w.look()
        self.assertEqual(w.changed, {"flag"})

    def test_what_has_changed_before(self):
        held = {"length": b"1"}
        w = watched.Watched({"length": "length"}, held.get)
        held["length"] = b"2"
        w.look()
        w.changed.clear()
        w.look()
        self.assertEqual(w.changed, set())
        held["length"] = b"3"
        w.hold()
        w.look()
        self.assertEqual(w.changed, set())


if __name__ == "__main__":
    unittest.main()
