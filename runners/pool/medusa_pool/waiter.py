"""The life of a process of the pool: it imports, waits, and becomes one start.

In: a socket at descriptor 3, and a message on it that names the modules to import. Out: a message with the facts that the imports depend on; after the
caller's go byte, the caller's program. Fails: the process ends if the pool is gone, or the caller before its go byte; failed imports are told to the pool.
"""

import contextlib
import fcntl
import gc
import os
import socket
import subprocess
import sys
import time
import traceback

import medusa_pool

from . import inherited, program, recorded, wire

LINK = 3
ABOVE = 256  # the socket's place while it waits: callers' descriptors have lower numbers
SESSION = "libmedusa.so"
PLAIN_DEVICES = "/dev/null", "/dev/zero", "/dev/urandom", "/dev/random"


def link():
    """The socket, at its place. Closes the other descriptors, which the pool's starter left open."""
    number = fcntl.fcntl(LINK, fcntl.F_DUPFD_CLOEXEC, ABOVE)
    os.closerange(LINK, number)
    os.closerange(number + 1, max([number, *used()]) + 1)
    return socket.socket(fileno=number)


def hide_output():
    """Keeps the text that imports print for the caller."""
    for fd, name in ((1, "stdout"), (2, "stderr")):
        kept = os.memfd_create(name)
        os.dup2(kept, fd)
        os.close(kept)


def imported(job):
    began = time.time()
    import importlib

    medusa_pool.importing = True
    with recorded.Recording() as recording, uncollected():
        for name in job["modules"]:
            importlib.import_module(name)
    medusa_pool.importing = False
    if type(sys.argv) is not list:
        sys.argv = list(sys.argv)
    fresh(began)
    opened()
    return recording


@contextlib.contextmanager
def uncollected():
    """Nearly all objects that imports make stay. Without this, the collector goes through all of them again and again, also in the program's collections."""
    before = gc.get_threshold()
    # mutant: no collections while modules are imported
    gc.set_threshold(0, *before[1:])
    yield
    if gc.get_threshold()[0] == 0:  # otherwise an import has set its own threshold
        gc.set_threshold(*before)
    gc.freeze()


def mapped():
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as f:
        return {line.split(None, 5)[5].rstrip("\n") for line in f if line.count("/")}


def files():
    """Files whose contents are in this process: path, and the fields that show whether the file is still the same."""
    found = {p for p in mapped() if p.startswith("/") and not p.startswith(("/dev/", "/memfd:")) and not p.endswith(" (deleted)")}
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if isinstance(path, str) and path.startswith("/"):
            found.add(path)
    out = []
    for path in sorted(found):
        try:
            st = os.stat(path)
        except OSError:
            continue  # a module that names a file which never was
        out.append({"path": path, "mtime": st.st_mtime_ns, "ctime": st.st_ctime_ns, "size": st.st_size, "inode": st.st_ino})
    return out


def fresh(began):
    """Refuses a file that was written during the imports: its old or its new contents may have been read."""
    for row in files():
        if row["ctime"] / 1e9 > began and row["path"].endswith((".py", ".so")):
            raise RuntimeError(f"{row['path']} was changed while modules were imported")


def opened():
    """Refuses imports that open a device or a session: only the caller's program may open them."""
    if any(os.path.basename(p) == SESSION for p in mapped()):
        raise RuntimeError("imports open a session (the engine does not take part in restored starts)")
    for fd in used():
        try:
            path = os.readlink(f"/proc/self/fd/{fd}")
        except OSError:
            continue
        if path.startswith("/dev/") and path not in PLAIN_DEVICES and not path.startswith("/dev/pts/"):
            raise RuntimeError(f"imports open {path}")


def used():
    return sorted(int(fd) for fd in os.listdir("/proc/self/fd"))


def told(recording, keep):
    facts = recording.facts()
    reads = {os.fsdecode(k): None if v is None else wire.packed([os.fsdecode(v)])[0] for k, v in facts.pop("reads").items()}
    return facts | {
        "pid": os.getpid(),
        "reads": reads,
        "files": files(),
        "names": sorted({name.partition(".")[0] for name in sys.modules}),
        "options": subprocess._args_from_interpreter_flags(),
        "descriptors": [fd for fd in used() if fd > 2 and fd != keep],
        "threads": len(os.listdir("/proc/self/task")),
    }


def wait():
    inherited.clear_signals()
    pool = link()
    hide_output()
    if sys.path and sys.path[0] == "":
        del sys.path[0]
    job, _ = wire.receive(pool)
    sys.argv = wire.unpacked(job["arguments"])
    try:
        recording = imported(job)
    except BaseException:
        wire.send(pool, {"failed": traceback.format_exc()})
        os._exit(1)
    wire.send(pool, {"ready": told(recording, pool.fileno())})
    message, received = wire.receive(pool)
    command = wire.unpacked(message["argv"])
    wanted = [pair.partition("=")[::2] for pair in wire.unpacked(message["environment"])]
    try:
        said = inherited.become(message, received, wanted, recording)
    except (OSError, ValueError) as e:
        wire.send(pool, {"failed": f"{type(e).__name__}: {e}"})
        os._exit(1)
    wire.send(pool, {"applied": True})
    if pool.recv(1) != b"G":
        os._exit(0)
    pool.close()
    inherited.streams(said)
    sys.stdout.reconfigure(line_buffering=os.isatty(1))
    sys.orig_argv = wire.unpacked(message["interpreter"]) + command
    if message["spawned"]:
        from . import spawned

        spawned.install(message["spawned"])
    return command


def main():
    try:
        command = wait()
    except (EOFError, ConnectionError):
        os._exit(0)
    program.run(command)
