"""The session: Medusa's side of one engine start, from libmedusa.so (cmd/libmedusa/libmedusa.h).

In: the environment that `medusa materialize` and `medusa restore` set. Out: the purpose of this start, the size of the KV
cache, the triggering layers to run, restored graphs. Fails: if anything does not fit, the session reports the reason
once on standard error and the engine starts natively: methods then answer as if Medusa were absent.
"""

import ctypes
import gc
import math
import os
import re
import sys

import torch

from . import contract, marks
from .contract import CHECK, NONE, RESTORE
from .ranges import Memory

_RUN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
_STEP = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)
_COLLECTIVE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(contract.Collective), ctypes.c_uint64)
_SELF_TEST = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


class MedusaError(RuntimeError):
    """libmedusa.so is missing, or was used in a way that it does not allow."""


def _library():
    """libmedusa.so that MEDUSA_SESSION_LIB names, beside the interposer that this process was started with, in this package (a wheel's), or above the
    folder that this package was installed in."""
    path = os.environ.get(contract.ENV_SESSION_LIB)
    if not path:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as f:
            found = re.search(r"(/\S*)/libmedusa_interpose\.so$", f.read(), re.M)
        here = os.path.dirname(os.path.abspath(__file__))
        inside = os.path.join(here, "lib")
        folder = found.group(1) if found else inside if os.path.isdir(inside) else os.path.join(here, "..", "..")
        path = os.path.join(folder, "libmedusa.so")
    try:
        lib = ctypes.CDLL(path)
    except OSError as e:
        raise MedusaError(f"load libmedusa.so: {e} (start the engine with medusa restore)") from e
    lib.medusa_session_error.restype = ctypes.c_char_p
    return lib


class GraphInvalid(MedusaError):
    """A restored graph must not be launched any more: the engine runs eagerly, or captures anew."""


class RestoredGraph:
    """A graph that Medusa rebuilt. It stays valid until its session is closed."""

    def __init__(self, session, index, batch, label, handle):
        self.session, self.index, self.batch, self.label, self.handle = session, index, batch, label, handle

    def usable(self):
        """Whether the graph may be launched. A lazy start builds it now."""
        return self.session.usable(self)

    def replay(self):
        """Launches the graph on torch's current stream. GraphInvalid: an object that it refers to is gone."""
        # mutant: restored graphs that are gone
        if not self.usable():
            raise GraphInvalid(self.session.reason())
        stream = torch.cuda.current_stream().cuda_stream
        result = self.session.launch(ctypes.c_void_p(self.handle), ctypes.c_void_p(stream))
        # mutant: driver error of a launch
        if result:
            self.session.failed(result)


class Session:
    """One engine start. Use it from one thread, after any fork, with torch's CUDA context current."""

    def __init__(self):
        self.run = NONE
        self.held = []
        self._mapped = False
        self.named = {}  # tensors by name: address and bytes
        self._memory = {}  # restored memory by name, as bytes
        self.executables = {}  # restored graphs by label
        self.captured = []  # labels, in order
        self._lib = None
        # Without a run, only a status may be asked for: the stages of a start without Medusa.
        if not (os.environ.get(contract.ENV_RUN) or os.environ.get(contract.ENV_STATUS)):
            return
        self._lib = _library()
        self.run = self._checked(self._lib.medusa_session_open())
        self.launch = ctypes.CDLL("libcuda.so.1").cuGraphLaunch

    def _checked(self, code):
        # mutant: errors of the library
        if code < 0 and code != contract.FALLBACK:
            raise MedusaError(self._lib.medusa_session_error().decode())
        return code

    @property
    def restoring(self):
        """Whether this start still is to be served by restored graphs."""
        # mutant: starts that are restored
        return self.run == RESTORE and bool(self._lib.medusa_session_restoring())

    @property
    def alone(self):
        """Whether this process is one of several ranks, and no other rank is running. The engine then makes no communicator, and stand_in takes the
        place of each of its calls."""
        return self.run != NONE and self._lib.medusa_session_alone() == 1

    def stand_in(self, call, stream):
        """Puts a local operation on the stream, in place of a call of a communicator: the result has this rank's data in place of the others'."""
        self._checked(self._lib.medusa_session_stand_in(ctypes.byref(call), ctypes.c_uint64(stream)))

    def phase(self, name):
        """Marks a phase, for the trace and for the stage times in the status. The first of warmup and capture begins with the
        map of torch's blocks. Before it, every run frees the blocks that torch would free at its first capture."""
        # mutant: block map of torch
        if name in ("warmup", "capture") and not self._mapped:
            self._mapped = True
            torch.cuda.synchronize()
            gc.collect()
            torch.cuda.empty_cache()
            marks.blocks()
        marks.phase(name)
        if self._lib:
            self._checked(self._lib.medusa_session_phase(name.encode()))

    def identify(self, factors):
        """States the factors that the artifact is valid for: a dict of strings. Call it before the engine allocates memory."""
        if self.run == NONE:
            return
        torch.cuda.init()
        torch.cuda.current_stream().synchronize()
        keys = (ctypes.c_char_p * len(factors))(*(k.encode() for k in factors))
        values = (ctypes.c_char_p * len(factors))(*(str(v).encode() for v in factors.values()))
        self._checked(self._lib.medusa_session_identify(keys, values, ctypes.c_size_t(len(factors))))

    @property
    def weights(self):
        """What this start does with its weights: WEIGHTS_ANY, WEIGHTS_OTHER or WEIGHTS_COUNT. Ask before identify."""
        return contract.WEIGHTS_ANY if self.run == NONE else self._checked(self._lib.medusa_session_weights())

    def elastic(self, least, block):
        """The engine serves with any KV cache from least bytes on, if the addresses of all of it are reserved. A block has block bytes, over
        all layers. Comes before identify."""
        if self.run != NONE:
            self._checked(self._lib.medusa_session_elastic(ctypes.c_uint64(least), ctypes.c_uint64(block)))

    def kv_room(self):
        """How many of kv_bytes there was room for at identify, or None if kv_bytes come from no artifact."""
        if self.run == NONE:
            return None
        value = ctypes.c_uint64()
        known = self._checked(self._lib.medusa_session_kv_room(ctypes.byref(value)))
        return value.value if known == 1 else None

    def kv_bytes(self):
        """The size of the KV cache in bytes if it is known without a profile forward, else None."""
        if self.run == NONE:
            return None
        value = ctypes.c_uint64()
        given = self._checked(self._lib.medusa_session_kv_bytes(ctypes.byref(value)))
        # mutant: size of the KV cache of a plug-in
        return value.value if given == 1 else None

    def workspace_bytes(self):
        """If kv_bytes is not None: the bytes to reserve for buffers that grow with a forward and stay. The profile forward would have
        made a buffer so large. A smaller one would be replaced later, and graphs that refer to it would lose it."""
        value = ctypes.c_uint64()
        self._checked(self._lib.medusa_session_workspace(ctypes.byref(value)))
        return value.value

    def triggers(self):
        """Batch sizes at which the first layer is to be run eagerly through trigger. Ask again once there are graphs: a native start that
        checks runs the layers then."""
        # mutant: triggers of a plug-in in a native start that checks
        if not self.restoring and self.run != CHECK:
            return []
        n = self._checked(self._lib.medusa_session_triggers(None, ctypes.c_size_t(0)))
        batches = (ctypes.c_int64 * n)()
        self._checked(self._lib.medusa_session_triggers(batches, ctypes.c_size_t(n)))
        return list(batches)

    def trigger(self, run):
        """Runs one triggering layer. Its memory comes from a pool of its own and leaves no trace in torch's allocator."""
        pool = torch.cuda.MemPool()
        failure = []

        def call(_):
            try:
                with torch.cuda.use_mem_pool(pool):
                    run()
                    torch.cuda.synchronize()
            except Exception as e:  # an exception cannot pass through C
                failure.append(e)
                return 1
            return 0

        callback = _RUN(call)
        code = self._checked(self._lib.medusa_session_trigger(callback, None))
        self.held.append(pool)
        # mutant: failed trigger
        if failure and code != contract.FALLBACK:
            raise failure[0]

    def tensor(self, name, t, role, **bounds):
        """Names a tensor, and holds it: graphs find it by its name, wherever torch's allocator put it in this process."""
        self.place(name, t, role, **bounds)
        # mutant: named tensors are held
        self.held.append(t)

    def place(self, name, t, role, **bounds):
        """As tensor, without holding it: for memory inside of a graph, which other graphs use after it."""
        marks.tensor(name, t, role, **bounds)
        self.named[name] = (t.data_ptr(), marks.extent(t))

    def memory(self, name, address, size, role, **bounds):
        """As place, for bytes that are part of no tensor of the engine."""
        self.place(name, torch.as_tensor(Memory(address, size), device="cuda"), role, **bounds)

    def restored_tensor(self, name, shape, dtype):
        """A tensor over the memory that a restored graph uses for one that was named inside of a capture. Call it after
        graphs; the memory is the session's, and goes with close."""
        t = self._restored_memory(name, math.prod(shape) * dtype.itemsize).view(dtype).view(shape)
        self.named[name] = (t.data_ptr(), marks.extent(t))
        return t

    def restored_view(self, name, dtype, shape, stride):
        """As restored_tensor, if the tensor was not contiguous, and if several have lain in memory of one name."""
        # mutant: bytes of a restored view
        size = (1 + sum((n - 1) * s for n, s in zip(shape, stride))) * dtype.itemsize
        return self._restored_memory(name, size).view(dtype).as_strided(shape, stride)

    def _restored_memory(self, name, size):
        # mutant: restored memory by name
        if name not in self._memory:
            address = ctypes.c_uint64()
            if not self._checked(self._lib.medusa_session_tensor(name.encode(), ctypes.byref(address))):
                raise MedusaError(f"find tensor {name}: the artifact names none so")
            self._memory[name] = torch.as_tensor(Memory(address.value, size), device="cuda")
        return self._memory[name]

    def note(self, name, value):
        """Opaque data that a restored start gets back: bytes, the same in every start."""
        marks.note(name, value)

    def noted(self, name):
        """The note under a name from the recording. Call it after graphs."""
        size = self._checked(self._lib.medusa_session_note(name.encode(), None, ctypes.c_size_t(0)))
        value = ctypes.create_string_buffer(size)
        self._checked(self._lib.medusa_session_note(name.encode(), value, ctypes.c_size_t(size)))
        return value.raw

    def places(self):
        """The addresses of everything named: tensors (address, bytes); restored graphs (CUgraphExec) by label, and their
        kernels; and the labels of captured graphs, in order."""
        return {"tensors": self.named, "restored": self.executables, "kernels": self.kernels(), "captured": self.captured}

    def graphs(self):
        """Restores every graph of the artifact: all, in the order in which they were captured, or None for a native start."""
        if not self.restoring:
            return None
        n = self._checked(self._lib.medusa_session_graphs(None, ctypes.c_size_t(0)))
        if n == contract.FALLBACK:
            return None
        found = (contract.SessionGraph * n)()
        self._checked(self._lib.medusa_session_graphs(found, ctypes.c_size_t(n)))
        graphs = [RestoredGraph(self, i, g.batch, g.label.decode(), g.exec) for i, g in enumerate(found)]
        self.executables = {g.label: g.handle for g in graphs}
        return graphs

    def usable(self, graph):
        """Whether a restored graph may be launched; its handle is set."""
        handle = ctypes.c_uint64()
        found = self._checked(self._lib.medusa_session_usable(ctypes.c_size_t(graph.index), ctypes.byref(handle)))
        graph.handle = handle.value
        return found == 1

    def reason(self):
        """The error of the last call."""
        return self._lib.medusa_session_error().decode()

    def sleep(self):
        """Gives back all device memory of the restored graphs, with no graph running. The engine may then unmap memory that graphs refer to,
        and map as much at the same addresses again. No graph is usable until wake returns True."""
        if self.run != NONE:
            self._memory = {}
            self._checked(self._lib.medusa_session_sleep())
            self.pool = torch.cuda.MemPool()  # frees the old pool, and the memory that checks have used

    def wake(self, same):
        """Makes the graphs again, once the engine's memory is mapped and has its old contents; False if not all of it is mapped. Restored
        tensors may lie elsewhere afterwards: ask for them again. The next usable replays all graphs on known data first, so call it between
        steps, once the weights are there. same: the weights have to be as they were."""
        return self.run == NONE or self._checked(self._lib.medusa_session_wake(ctypes.c_int(same))) == 1

    def invalidate(self, reason):
        """The engine makes a change that invalidates restored graphs: weights at other addresses, another adapter. Frees of
        memory and unloads of modules that graphs refer to are noticed without it."""
        if self.run != NONE:
            self._checked(self._lib.medusa_session_invalidate(str(reason).encode()))

    def kernels(self):
        """How this process found each kernel of the restored graphs: (how, mangled name, module); how is one of loaded,
        triggered, object and artifact. Call it after graphs."""
        if self.run != RESTORE:
            return []
        size = self._checked(self._lib.medusa_session_kernels(None, ctypes.c_size_t(0)))
        if size == contract.FALLBACK:
            return []
        text = ctypes.create_string_buffer(size)
        self._checked(self._lib.medusa_session_kernels(text, ctypes.c_size_t(size)))
        return [tuple(line.split("\t")) for line in text.raw.decode().splitlines()]

    def provide(self, before_replay=None, eager=None):
        """Registers the engine's functions for a check of its graphs, by label. Call it before graphs. before_replay runs no forward: it
        puts the memory that the engine writes before each replay of a graph into the state that it had at the capture. eager
        makes the graph's step without a graph. Memory that they allocate lies in a pool of their own."""
        if self.run == NONE:
            return
        self.pool = torch.cuda.MemPool()

        def step(f):
            def call(_, label):
                try:
                    with torch.cuda.use_mem_pool(self.pool):
                        f(label.decode())
                        torch.cuda.synchronize()
                except Exception as e:  # as in trigger
                    print(f"medusa: graph {label.decode()}: {e}", file=sys.stderr, flush=True)
                    return 1
                return 0

            return _STEP(call) if f else _STEP()

        self.steps = step(before_replay), step(eager)  # C keeps their addresses
        self._checked(self._lib.medusa_session_provide(*self.steps, None))

    def collectives(self, make):
        """make(call, stream) makes a call of the engine's communicators that a graph holds, on a stream that captures. Call it before graphs, in
        which all ranks make the same calls in the same order."""
        if self.run == NONE:
            return

        def call(_, made, stream):
            try:
                make(made.contents, stream)
            except Exception as e:  # as in trigger
                print(f"medusa: collective call: {e}", file=sys.stderr, flush=True)
                return 1
            return 0

        self.calls = _COLLECTIVE(call)  # C keeps its address
        self._checked(self._lib.medusa_session_collectives(self.calls, None))

    def connect(self, step):
        """step() finishes what calls of communicators in graphs left for later, on all ranks at the same time, after the calls and before any replay."""
        if self.run == NONE:
            return

        def call(_):
            try:
                step()
            except Exception as e:  # as in trigger
                print(f"medusa: connect collective calls: {e}", file=sys.stderr, flush=True)
                return 1
            return 0

        self.connecting = _RUN(call)  # C keeps its address
        self._checked(self._lib.medusa_session_connect(self.connecting, None))

    def ready(self, self_test=None):
        """Ends the start. In runs that verify it does not return; self_test() returns the bytes that both must serve."""
        marks.phase("ready")
        if not self._lib:
            return
        self._checked(self._lib.medusa_session_phase(b"ready"))
        sys.stdout.flush()
        sys.stderr.flush()

        def call(_, buffer, capacity):
            try:
                out = self_test()
            except Exception as e:  # as above
                print(f"medusa: self test: {e}", file=sys.stderr, flush=True)
                return -1
            # mutant: self test that is too long
            ctypes.memmove(buffer, out, min(len(out), capacity))
            return len(out)

        callback = _SELF_TEST(call) if self_test else _SELF_TEST()
        self._checked(self._lib.medusa_session_ready(callback, None))

    def refuse(self, reason):
        """The engine takes no part in this start's purpose, or cannot use the restored graphs. A recording run ends here; a
        start that was to be restored goes on natively."""
        if self.run != NONE:
            self._checked(self._lib.medusa_session_refuse(reason.encode()))
            # mutant: graphs of a refused start
            self.executables = {}

    def failed(self, result):
        """A driver error after ready. If it is sticky the process ends, for its parent to start natively."""
        self._lib.medusa_session_failed(ctypes.c_int(result))
        raise MedusaError(f"launch restored graph: driver error {result}")

    def close(self):
        """Destroys the restored graphs and frees their memory. No graph may be running."""
        if self._lib:
            self._lib.medusa_session_close()
        self.held.clear()
        self._memory.clear()
