"""Gives itself the properties of a request, and becomes the command: medusa restore inherits them as from a shell.

In: the properties as JSON, then the command. Out: the command. Fails: if a property cannot be had.
"""

import json
import os
import resource
import signal
import sys

wanted, command = json.loads(sys.argv[1]), sys.argv[2:]
for number in signal.valid_signals():
    if signal.getsignal(number) == signal.SIG_IGN:  # Python's own, and those of nohup
        signal.signal(number, signal.SIG_DFL)
for number in wanted["ignored"] or []:
    signal.signal(number, signal.SIG_IGN)
for number, path in wanted["descriptors"].items():
    fd = os.open(path, os.O_RDONLY)
    os.dup2(fd, int(number))
    if fd != int(number):
        os.close(fd)
os.umask(wanted["umask"])
os.nice(wanted["nice"])
with open("/proc/self/oom_score_adj", "w", encoding="ascii") as f:
    f.write(str(wanted["oom"]))
resource.setrlimit(resource.RLIMIT_CORE, (wanted["core"], resource.getrlimit(resource.RLIMIT_CORE)[1]))
resource.setrlimit(resource.RLIMIT_NOFILE, (wanted["nofile"], wanted["nofile"] + 1000))
signal.pthread_sigmask(signal.SIG_SETMASK, wanted["mask"] or [])
os.execv(command[0], command)
