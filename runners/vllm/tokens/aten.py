"""ATen's operators for the simulated GPU, which executes none of ATen's own kernels.

In: none; `install` replaces the CUDA kernels of all operators but those that launch none, and matrix products, which cuBLAS's stand-in
computes. Out: copies, fills and rows are driver calls or kernels of Triton, and may be captured (device.py). All other operators are computed by
ATen on the host, in a host function that the stream runs in its turn. The call does not wait for it, so a program that
forgets to wait still finds old bytes. Operators whose result's size depends on contents wait, as ATen's own do.
Fails: RuntimeError if an operator of the host is captured; the process ends if one fails in its turn.
"""

import collections
import ctypes
import itertools
import os
import traceback

import torch
from torch.utils._python_dispatch import _disable_current_modes

import device

# These make views, allocate, or query, and launch no kernels.
NO_KERNEL = {
    "as_strided", "view", "view_as_real", "view_as_complex", "_reshape_alias", "unfold", "empty_strided", "empty.memory_format",
    "resize_", "set_", "set_.source_Storage", "set_.source_Storage_storage_offset", "set_.source_Tensor", "is_set_to", "record_stream",
    "_local_scalar_dense", "_pin_memory", "_nested_view_from_buffer", "_nested_compute_contiguous_strides_offsets", "_efficientzerotensor",
}  # fmt: skip
PRODUCTS = {"mm", "addmm", "bmm", "baddbmm", "_addmm_activation"}
COUNT = collections.Counter()  # how often each operator was computed on the host

_library = torch.library.Library("aten", "IMPL")
_waiting, _names, _twins = {}, itertools.count(1), {}


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _in_turn(name):
    """The stream has come to this operator. Any thread may run it, also one that traces or tracks gradients."""
    try:
        with _disable_current_modes(), torch.inference_mode():
            _waiting.pop(name)()
    except BaseException:
        traceback.print_exc()
        os._exit(70)


def queue(work):
    name = next(_names)
    _waiting[name] = work
    device.call("cuLaunchHostFunc", device.stream(), _in_turn, ctypes.c_void_p(name))


def each(f, x):
    """x with f(t) in place of each element, of a list in a list as well."""
    return type(x)(each(f, y) for y in x) if isinstance(x, (list, tuple)) else f(x)


def on_device(x):
    return isinstance(x, torch.Tensor) and x.is_cuda


def as_meta(x):
    """An argument without its contents."""
    if isinstance(x, torch.Tensor):
        return torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="meta") if x.is_cuda or x.dim() else x
    if isinstance(x, torch.Generator):
        return None
    return torch.device("meta") if isinstance(x, torch.device) else x


def on_host(x):
    """An argument for the host: device memory of the simulated GPU can be read at its address once the stream has come so far."""
    if on_device(x):
        return device.Memory(x)
    if isinstance(x, torch.Tensor):
        return x.clone()  # the program may change it before the stream's turn
    if isinstance(x, torch.Generator):
        return twin(x)
    return torch.device("cpu") if isinstance(x, torch.device) else x


def twin(generator):
    """The host's generator of the same seed; ATen's own of the device would give other numbers."""
    seed = generator.initial_seed()
    kept, made = _twins.get(id(generator), (None, None))
    if kept is not generator or made.initial_seed() != seed:
        made = torch.Generator().manual_seed(seed)
        _twins[id(generator)] = generator, made
    return made


def opened(x):
    return x.tensor() if isinstance(x, device.Memory) else x


class Host:
    """One operator, computed on the host."""

    def __init__(self, op, name):
        self.op, self.name = op, name
        self.waits = any(str(r.type) not in ("Tensor", "List[Tensor]") for r in op._schema.returns)
        self.written = [(i, a) for i, a in enumerate(op._schema.arguments) if a.alias_info and a.alias_info.is_write]

    def __call__(self, *args, **kwargs):
        if torch.cuda.is_current_stream_capturing():
            raise RuntimeError(f"capture aten::{self.name}: it is computed on the host (write it in Triton, in device.py)")
        COUNT[self.name] += 1
        written = [t for t in self.outputs(args, kwargs) if on_device(t)]
        if not self.waits:
            try:
                return self.queued(args, kwargs, written)
            except NotImplementedError:
                self.waits = True  # the size of the result depends on contents
        return self.at_once(args, kwargs, written)

    def outputs(self, args, kwargs):
        for i, argument in self.written:
            x = args[i] if i < len(args) and not argument.kwarg_only else kwargs.get(argument.name)
            yield from x if isinstance(x, (list, tuple)) else [x]

    def queued(self, args, kwargs, written):
        """The sizes of results come from a run on tensors without contents."""
        metas = {}

        def meta(x):
            return metas.setdefault(id(x), as_meta(x)) if isinstance(x, torch.Tensor) else as_meta(x)

        made = self.op(*(each(meta, x) for x in args), **{k: each(meta, x) for k, x in kwargs.items()})
        for t in written:
            if t.shape != metas[id(t)].shape:
                t.resize_(metas[id(t)].shape)
        own = {id(metas[id(t)]): t for t in written}
        fresh = []

        def result(x):
            if not isinstance(x, torch.Tensor):
                return x
            if id(x) not in own:
                t = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="cuda")
                fresh.append(device.Memory(t))
                return t
            return own[id(x)]

        answer = each(result, made)
        a, k = [each(on_host, x) for x in args], {n: each(on_host, x) for n, x in kwargs.items()}
        kinds = [id(x) in own for x in _flat(made)]

        def compute():
            done = self.op(*(each(opened, x) for x in a), **{n: each(opened, x) for n, x in k.items()})
            results = [x for x, was_given in zip(_flat(done), kinds) if not was_given]
            for memory, x in zip(fresh, results, strict=True):
                memory.tensor().copy_(x)

        queue(compute)
        return answer

    def at_once(self, args, kwargs, written):
        device.call("cuStreamSynchronize", device.stream())
        if written:
            raise RuntimeError(f"aten::{self.name}: writes to an argument of a size that depends on contents")
        done = self.op(*(opened_now(x) for x in args), **{n: opened_now(x) for n, x in kwargs.items()})
        return each(lambda x: x.clone().cuda() if isinstance(x, torch.Tensor) else x, done)


def opened_now(x):
    return each(lambda y: opened(on_host(y)), x)


def _flat(x):
    if isinstance(x, (list, tuple)):
        return [z for y in x for z in _flat(y)]
    return [x] if isinstance(x, torch.Tensor) else []


def install():
    hosts = {}
    for full in torch._C._dispatch_get_registrations_for_dispatch_key("CUDA"):
        namespace, _, name = full.partition("::")
        base, _, overload = name.partition(".")
        packet = getattr(torch.ops.aten, base, None) if namespace == "aten" else None
        op = getattr(packet, overload or "default", None)
        if op is not None and name not in NO_KERNEL and base not in PRODUCTS:
            hosts[name] = Host(op, name)
    hosts["copy_"] = Host(torch.ops.aten.copy_.default, "copy_")  # the same for all devices, and launches kernels nonetheless
    own = device.operators(hosts)
    for name, host in hosts.items():
        _library.impl(name, own.get(name, host), "CUDA", allow_override=True)
