"""A small engine: tells its inherited properties, and ends as its second argument says.

In: OUT, a file for its findings. Out: that file, a word on each stream. Fails: as the test asks.
"""

import json
import os
import random
import resource
import signal
import sys
import time

import imported_module


def descriptor(number):
    try:
        return os.pread(number, 100, 0).decode()
    except OSError:
        return None


waited = []
if sys.argv[2] == "signal":
    signal.signal(signal.SIGUSR2, lambda number, frame: waited.append(number))
found = {
    "name": __name__,
    "file": __file__,
    "argv": sys.argv,
    "sentinel": os.environ.get("SENTINEL"),
    "variables": sorted(k for k in os.environ if k.startswith("ONLY_")),
    "inner": os.popen("echo $SENTINEL").read().strip(),
    "folder": os.getcwd(),
    "input": sys.stdin.read(),
    "descriptors": {n: descriptor(n) for n in (5, 6, 7, 8, 9)},
    "limits": [resource.getrlimit(resource.RLIMIT_NOFILE), resource.getrlimit(resource.RLIMIT_CORE)],
    "mask": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
    "ignored": [n for n in (signal.SIGHUP, signal.SIGINT) if signal.getsignal(n) is signal.SIG_IGN],
    "umask": os.umask(0o77),
    "nice": os.nice(0),
    "oom": int(open("/proc/self/oom_score_adj").read()),
    "hash": hash("sentinel"),
    "random": [imported_module.RANDOM, random.random()],
    "read": imported_module.READ,
    "set": os.environ.get("SET_BY_IMPORT"),
    "pid": os.getpid(),
    "pool": os.environ.get("MEDUSA_POOLED"),
}
print("out", sys.argv[1], flush=True)
print("err", sys.argv[1], file=sys.stderr, flush=True)
with open(os.environ["OUT"] + ".part", "w", encoding="utf-8") as f:
    json.dump(found, f)
os.rename(os.environ["OUT"] + ".part", os.environ["OUT"])
what, number = sys.argv[2], int(sys.argv[3])
if what == "exit":
    sys.exit(number)
if what == "die":
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
end = time.monotonic() + 30
while time.monotonic() < end and not waited:
    time.sleep(0.01)
sys.exit(number if waited else 99)  # no signal came
