"""A module of the command's own process, whose import ends only once the other process imports. No collection happens meanwhile.

In: the folder NEWS. Out: a file there. Fails: ImportError if no other process imports meanwhile, or the collector runs.
"""

import gc
import os
import time

folder = os.environ["NEWS"]
end = time.monotonic() + float(os.environ["PATIENCE"])
while not os.path.exists(os.path.join(folder, "importing")):
    if time.monotonic() > end:
        raise ImportError("nothing imports beside this")
    time.sleep(0.01)
before = gc.get_stats()[0]["collections"]
CYCLES = [[] for _ in range(10_000)]
if gc.get_stats()[0]["collections"] > before:
    raise ImportError("the collector runs during imports")
EARLY, FOLDER = os.getpid(), os.getcwd()
