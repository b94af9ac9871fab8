"""Whether the driver placed the region of a restored start at its base, once torch has device memory.

In: the interposer with a region to ask for, and modules to import before torch. Out: two lines, the state and the reason (struct medusa_exact of medusa.h). Fails: as the
imports do.
"""

import ctypes
import importlib
import sys


class Exact(ctypes.Structure):
    _fields_ = [("base", ctypes.c_uint64), ("size", ctypes.c_uint64), ("state", ctypes.c_uint32), ("reason", ctypes.c_char * 124)]


def main():
    for name in sys.argv[1:]:
        importlib.import_module(name)
    torch = importlib.import_module("torch")
    torch.ones(1, device="cuda")
    got = Exact()
    ctypes.CDLL(None).medusa_exact_get(ctypes.byref(got))
    print("state", got.state)
    print("reason", got.reason.decode())


if __name__ == "__main__":
    main()
