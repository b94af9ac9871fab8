"""Processes that an engine spawns come from the pool too, if it has one that fits.

In: multiprocessing's method `spawn`, and the pool's socket. Out: a process object as multiprocessing makes it. Fails: never; a process that the
pool does not have is spawned as ever, with one line that names the difference.
"""

import os
import select
import signal
import socket
import stat
import sys
import threading
from multiprocessing import context, popen_spawn_posix, util

from . import wire

spawnv_passfds, launching = util.spawnv_passfds, threading.local()


def install(path):
    def spawnv(executable, args, passed):
        """Of all that multiprocessing starts, only processes of its users come from the pool."""
        popen = getattr(launching, "popen", None)
        if popen is None or "--multiprocessing-fork" not in map(os.fsdecode, args):
            return spawnv_passfds(executable, args, passed)
        try:
            popen.held, differences = ask(path, executable, args, passed)
        except (OSError, EOFError, ValueError) as e:
            differences = [str(e)]
        if popen.held:
            return popen.held.pid
        print(f"medusa: cold start of a spawned process: {', '.join(differences)}", file=sys.stderr, flush=True)
        return spawnv_passfds(executable, args, passed)

    util.spawnv_passfds = spawnv
    context.SpawnProcess._Popen = staticmethod(Pooled)


class Pooled(popen_spawn_posix.Popen):
    """Its process is no child of this one: the pool's guard, which both sides hold on to, tells how it has ended."""

    held = None

    def _launch(self, process_obj):
        launching.popen = self
        try:
            super()._launch(process_obj)
        finally:
            launching.popen = None

    def poll(self, flag=os.WNOHANG):
        if not self.held:
            return super().poll(flag)
        if self.returncode is None:
            self.returncode = self.held.ended(None if flag == 0 else 0)
        return self.returncode

    def _send_signal(self, sig):
        if not self.held:
            super()._send_signal(sig)
        elif self.returncode is None:
            self.held.signal(sig)


class Held:
    """A process whose guard's control is here. It ends with this process."""

    def __init__(self, pid, control, report, go):
        self.pid, self.control, self.report, self.text = pid, control, report, b""
        os.write(go, b"G")
        os.close(go)

    def signal(self, number):
        try:
            os.write(self.control, bytes([number]))
        except BrokenPipeError:
            pass  # it has ended

    def ended(self, timeout):
        """As multiprocessing's returncode; None: not yet."""
        while True:
            wait = select.poll()
            wait.register(self.report, select.POLLIN)
            if not wait.poll(timeout):
                return None
            part = os.read(self.report, 4096)
            if not part:
                break
            self.text += part
        os.close(self.control)
        os.close(self.report)
        # A guard that was killed has taken the process with it.
        return os.waitstatus_to_exitcode(int(self.text)) if self.text.isdigit() else -signal.SIGKILL


def ask(path, executable, args, passed):
    numbers = sorted({0, 1, 2, *passed})
    folder = os.open(".", os.O_PATH | os.O_CLOEXEC)
    link = socket.socket(socket.AF_UNIX)
    try:
        for name in (os.path.dirname(path), path):
            if os.stat(name).st_uid != os.geteuid() or stat.S_IMODE(os.stat(name).st_mode) & 0o077:
                raise OSError(f"{name} is not this user's alone")
        link.connect(path)
        wire.send(
            link,
            {
                "protocol": 1,
                "ask": "start",
                "spawned": True,
                "argv": wire.packed([os.fsdecode(a) for a in args]),
                "executable": os.fsdecode(executable),
                "arguments": wire.packed(sys.argv),
                "environment": wire.packed(f"{k}={v}" for k, v in os.environ.items()),
                "descriptors": numbers,
            },
            [folder, *numbers],
        )
        answer, received = wire.receive(link)
    finally:
        os.close(folder)
        link.close()
    if "pid" in answer:
        return Held(answer["pid"], *received), None
    for fd in received:
        os.close(fd)
    return None, answer.get("differences") or [answer.get("error", "no answer")]
