"""An engine that spawns a process, as vLLM does: it waits for that process's imports to have begun, and only then asks for it.

In: the folder NEWS for files of both processes. Out: the exit code of the process. Fails: exit code 3 if no process imports beside this program, 4 if this
process has not imported its module before, 5 if the collector is off.
"""

import gc
import multiprocessing
import os
import sys
import time


def news(name, wait=0.0):
    """Leaves a file, or waits for one."""
    path = os.path.join(os.environ["NEWS"], name)
    if not wait:
        open(path, "w", encoding="utf-8").close()
    end = time.monotonic() + wait
    while not os.path.exists(path):
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def spawned():
    import slow_module

    news("spawned")
    sys.exit(slow_module.PID != os.getpid())


if __name__ == "__main__":
    if getattr(sys.modules.get("early_module"), "EARLY", 0) != os.getpid() and "NEVER_POOLED" not in os.environ:
        sys.exit(4)
    if not gc.isenabled() or gc.get_threshold()[0] == 0:
        sys.exit(5)
    if not news("importing", wait=float(os.environ["PATIENCE"])):
        sys.exit(3)
    process = multiprocessing.get_context("spawn").Process(target=spawned)
    news("asking")
    process.start()
    process.join()
    sys.exit(process.exitcode)
