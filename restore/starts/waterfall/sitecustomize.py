"""Records which modules an interpreter imports, and when. `medusa bench --report` puts this file's folder into PYTHONPATH of one start.

In: an interpreter that begins. Out: a file in this folder, named by the process: a line with its begin and its arguments, then for each outermost import a line
with its begin, its end, and for each package the nanoseconds that its own modules took. Fails: never; if the file cannot be written, the line is lost.
"""

import collections
import json
import os
import sys
import time
from importlib import machinery, util

FOLDER = os.path.dirname(os.path.abspath(__file__))
stack, took = [], collections.Counter()


def write(*fields):
    """Opened each time: the process may close descriptors that it does not know, or fork."""
    try:
        with open(os.path.join(FOLDER, str(os.getpid())), "a", encoding="utf-8") as f:
            f.write(json.dumps(fields) + "\n")
    except OSError:
        pass


def timed(load):
    def run(self, what):
        name, began = getattr(what, "__name__", None) or what.name, time.time_ns()
        stack.append(0)
        try:
            return load(self, what)
        finally:
            inner, ended = stack.pop(), time.time_ns()
            # mutant: packages without what they import
            took[name.partition(".")[0]] += ended - began - inner
            if stack:
                stack[-1] += ended - began
            else:
                write(began, ended, dict(took))
                took.clear()

    return run


def other():
    """Runs the file of this name that the interpreter would have found. It takes this module's place."""
    spec = machinery.PathFinder.find_spec("sitecustomize", [p for p in sys.path if os.path.abspath(p) != FOLDER])
    if spec and spec.loader:
        sys.modules[__name__] = util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[__name__])


write(time.time_ns(), 0, sys.orig_argv)
machinery.SourceFileLoader.exec_module = timed(machinery.SourceFileLoader.exec_module)
machinery.ExtensionFileLoader.create_module = timed(machinery.ExtensionFileLoader.create_module)
other()
