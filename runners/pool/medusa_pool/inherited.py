"""Makes this process equal to a child of the caller.

In: the message of the pool (docs/pool.md), with descriptors. Out: environment, folder, umask, limits, signals, descriptors and output as the caller's.
Fails: OSError or ValueError if something cannot be made equal; the process is of no use then.
"""

import fcntl
import os
import resource
import signal
import sys


def variables(wanted, recording):
    """Sets the caller's variables, and then repeats the changes that imports made: in a cold start, imports change the caller's variables."""
    wanted = dict(wanted)
    for name in list(os.environ):
        # mutant: variables of the pool go
        if name not in wanted:
            del os.environ[name]
    for name, value in wanted.items():
        if os.environ.get(name) != value:
            os.environ[name] = value
    for name, value in recording.set.items():
        os.environb[name] = value
    for name in recording.removed:
        os.environb.pop(name, None)


def descriptors(folder, received, numbers):
    """The caller's descriptors at the caller's numbers. Received ones lie above all of these first, so that none is overwritten early."""
    os.fchdir(folder)
    os.close(folder)
    above = max([*numbers, 2]) + 1
    lifted = []
    for fd in received:
        lifted.append(fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, above))
        os.close(fd)
    sys.stdout.flush()
    sys.stderr.flush()
    said = [taken(fd) for fd in (1, 2)]
    for fd, number in zip(lifted, numbers):
        os.dup2(fd, number)
        os.close(fd)
    return said


def taken(fd):
    """The text that imports have printed."""
    size = os.fstat(fd).st_size
    return os.pread(fd, size, 0)


def streams(said):
    """Prints the imports' text to the caller's output. Python's own stream objects stay."""
    for fd, text in zip((1, 2), said):
        while text:
            text = text[os.write(fd, text) :]


def signals(mask, ignored):
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
    # mutant: signals that are blocked
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def clear_signals():
    """The pool's own ignored signals, before anything is imported. Python itself ignores two."""
    for number in signal.valid_signals():
        if number in (signal.SIGPIPE, getattr(signal, "SIGXFSZ", None)):
            continue
        try:
            if signal.getsignal(number) is signal.SIG_IGN:
                signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        except (OSError, ValueError):
            pass  # not a signal that a program may change
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def limits(rows):
    """Comes late: the limits may leave no room for other steps."""
    for number, soft, hard in rows:
        # mutant: limits of the caller
        if resource.getrlimit(number) != (soft, hard):
            resource.setrlimit(number, (soft, hard))


def become(message, received, wanted, recording):
    variables(wanted, recording)
    folder, *files = received
    said = descriptors(folder, files, message["descriptors"])
    os.umask(message["umask"])
    with open("/proc/self/oom_score_adj", "r+", encoding="ascii") as f:
        if int(f.read()) != message["oom_score_adj"]:
            f.seek(0)
            f.write(str(message["oom_score_adj"]))
    limits(message["limits"])
    signals(message["mask"], message["ignored"])
    return said
