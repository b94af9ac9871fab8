"""The facts that imports depend on: variables that they read, and whether they ask for the working folder or the command line.

In: the process's environment and arguments, while modules are imported. Out: `facts`, and the variables that imports set and removed.
Fails: never. Reads by C code (getenv) are not seen; the key of the pool lists those that are known.
"""

import os
import sys
from collections.abc import ItemsView, KeysView, ValuesView

PLAIN = type(os.environ)


class Environment(PLAIN):
    """Takes the place of os.environ's class. Its notes lie in the Recording, because os.environb is another object on the same data."""

    def __getitem__(self, key):
        # mutant: variables that imports read
        note(self.encodekey(key), self._data)
        return super().__getitem__(key)

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        now.own.add(self.encodekey(key))

    def __delitem__(self, key):
        super().__delitem__(key)
        now.own.add(self.encodekey(key))

    def __iter__(self):
        now.whole = True
        now.listed = set(self._data)
        return super().__iter__()

    def __len__(self):
        now.whole = True
        return super().__len__()

    def keys(self):
        return KeysView(self)

    def items(self):
        return ItemsView(self)

    def values(self):
        return ValuesView(self)


class Arguments(list):
    def __getitem__(self, index):
        now.arguments = True
        return super().__getitem__(index)

    def __iter__(self):
        now.arguments = True
        return super().__iter__()

    def __len__(self):
        now.arguments = True
        return super().__len__()

    def __contains__(self, value):
        now.arguments = True
        return super().__contains__(value)


class Recording:
    """From `with` to its end."""

    def __init__(self):
        self.reads, self.own, self.listed = {}, set(), set()
        self.whole = self.folder = self.arguments = False

    def __enter__(self):
        global now
        now = self
        self.before = started_with()
        self.kept = os.getcwd, os.getcwdb, sys.argv
        os.getcwd, os.getcwdb = self.asked(os.getcwd), self.asked(os.getcwdb)
        sys.argv = Arguments(sys.argv)
        os.environ.__class__ = os.environb.__class__ = Environment
        return self

    def __exit__(self, *_):
        os.environ.__class__ = os.environb.__class__ = PLAIN
        os.getcwd, os.getcwdb, arguments = self.kept
        if type(sys.argv) is Arguments:
            sys.argv = arguments
        after = os.environ._data
        self.set = {k: v for k, v in after.items() if self.before.get(k) != v}
        self.removed = [k for k in self.before if k not in after]

    def asked(self, function):
        def getcwd():
            self.folder = True
            return function()

        return getcwd

    def facts(self):
        return {"reads": self.reads, "whole": self.whole, "folder": self.folder, "arguments": self.arguments}


def started_with():
    """The variables that the process was started with: the interpreter may have set some since (LC_CTYPE)."""
    with open("/proc/self/environ", "rb") as f:
        return dict(pair.split(b"=", 1) for pair in f.read().split(b"\0") if b"=" in pair)


def note(name, data):
    """A variable does not count if imports have set it themselves, or if it is read because it was listed."""
    if name in now.listed:
        now.listed.discard(name)
    elif name not in now.own and name not in now.reads:
        now.reads[name] = data.get(name)


now = None
