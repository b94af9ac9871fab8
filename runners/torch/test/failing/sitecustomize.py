"""A rank fails at a call of its session.

In: this folder in PYTHONPATH, FAILING="RANK CALL KIND": CALL is a method of medusa.Session, or `make` for a collective call of its graphs; KIND is
error, death or silence. Out: the rank raises an exception, ends or sleeps in place of the call. Fails: if there is no such call.
"""

import importlib.util
import os
import sys
import time

HOLDERS = {"medusa_graphs.session": "Session", "medusa_graphs.nccl": "Communicators"}


def fail(kind):
    if kind == "death":
        os._exit(9)
    if kind == "silence":
        time.sleep(3600)
    raise RuntimeError("a rank that fails for a test")


def spoil(holder, call, rank, kind):
    good = getattr(holder, call)

    def failing(*args, **kwargs):
        restored = os.environ.get("MEDUSA_RUN") == "restore"  # and not the native start that follows
        here = os.environ.get("MEDUSA_RANK") or os.environ.get("RANK")
        return fail(kind) if restored and here == rank else good(*args, **kwargs)

    setattr(holder, call, failing)


class Finder:
    """Spoils the call once its module is imported. An import from here would import torch in each process of the engine."""

    def find_spec(self, name, path, target=None):
        rank, call, kind = os.environ["FAILING"].split()
        if name != ("medusa_graphs.nccl" if call == "make" else "medusa_graphs.session"):
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            spoil(getattr(module, HOLDERS[name]), call, rank, kind)

        spec.loader.exec_module = exec_module
        return spec


if "FAILING" in os.environ:
    sys.meta_path.insert(0, Finder())
