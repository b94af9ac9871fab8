"""Runs small work of a model once on a device, and captures one graph of it.

With it, the driver's description of the graph can be compared with the recorder's.

In: none; under the recorder, its count of modules, too. Out: lines of a word and its subject.

    load WHEN SECONDS MODULES   modules that were loaded until then, since the program began
    node NUMBER FUNCTION KERNEL NAME   a kernel node of the captured graph, as cuGraphKernelNodeGetParams_v2 answers. FUNCTION: none,
                                kernel (its library answers to it), function (its module does) or nameless. KERNEL: none, kernel
                                or nameless
    captured N                  kinds of work in the graph

Fails: as torch does.
"""

import ctypes
import time

import torch
import torch.nn.functional as F

import triton_norm

BEGAN = time.monotonic()
KERNEL_NODE = 0


class RMSNorm(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(width, dtype=torch.bfloat16, device="cuda"))
        self.variance_epsilon = 1e-6


class KernelNode(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS of CUDA 12."""

    _fields_ = [("func", ctypes.c_void_p), *((n, ctypes.c_uint) for n in ("gx", "gy", "gz", "bx", "by", "bz", "shared")),
                ("params", ctypes.c_void_p), ("extra", ctypes.c_void_p), ("kern", ctypes.c_void_p), ("context", ctypes.c_void_p)]


def loads(when):
    try:
        modules = ctypes.CDLL(None).medusa_module_count()
    except AttributeError:
        modules = -1
    print("load", when.replace(" ", "-"), f"{time.monotonic() - BEGAN:.3f}", modules)


class Driver:
    def __init__(self):
        self.lib = ctypes.CDLL("libcuda.so.1")

    def answers(self, call, handle, *more):
        out = ctypes.c_void_p()
        f = getattr(self.lib, call, None)
        return f is not None and f(ctypes.byref(out), ctypes.c_void_p(handle), *more) == 0

    def name(self, call, handle):
        text = ctypes.c_char_p()
        f = getattr(self.lib, call, None)
        return text.value.decode() if f is not None and f(ctypes.byref(text), ctypes.c_void_p(handle)) == 0 and text.value else ""

    def describe(self, params):
        """How the function and the kernel of a node can be identified, and the name that they have."""
        func, kern, names = "none", "none", []
        if params.func:
            func = "kernel" if self.answers("cuKernelGetLibrary", params.func) else "nameless"
            names.append(self.name("cuKernelGetName" if func == "kernel" else "cuFuncGetName", params.func))
            if func == "nameless" and self.answers("cuFuncGetModule", params.func):
                func = "function"
        if params.kern:
            kern = "kernel" if self.answers("cuKernelGetLibrary", params.kern) else "nameless"
            names.append(self.name("cuKernelGetName", params.kern))
        return func, kern, next((n for n in names if n), "-")

    def nodes(self, graph):
        count = ctypes.c_size_t()
        self.check(self.lib.cuGraphGetNodes(ctypes.c_void_p(graph), None, ctypes.byref(count)))
        found = (ctypes.c_void_p * count.value)()
        self.check(self.lib.cuGraphGetNodes(ctypes.c_void_p(graph), found, ctypes.byref(count)))
        for i, node in enumerate(found):
            kind, params = ctypes.c_int(), KernelNode()
            self.check(self.lib.cuGraphNodeGetType(ctypes.c_void_p(node), ctypes.byref(kind)))
            if kind.value == KERNEL_NODE:
                self.check(self.lib.cuGraphKernelNodeGetParams_v2(ctypes.c_void_p(node), ctypes.byref(params)))
                print("node", i, *self.describe(params))

    @staticmethod
    def check(result):
        if result:
            raise RuntimeError(f"the driver answers {result}")


def main():
    torch.manual_seed(1)
    make = lambda *shape: torch.randn(shape, dtype=torch.float32).to("cuda", torch.bfloat16)
    loads("begin")
    x, w, norm = make(64, 256), make(256, 256), RMSNorm(256)
    loads("first tensor")
    work = {
        "product": lambda: x @ w,
        "attention": lambda: F.scaled_dot_product_attention(*(x.view(1, 64, 4, 64).transpose(1, 2) for _ in range(3)), is_causal=True),
        "triton": lambda: triton_norm.forward(norm, x),
        "pointwise": lambda: F.silu(x) * x,
    }
    with torch.inference_mode():
        for name, f in work.items():
            f()
            torch.cuda.synchronize()
            loads(name)
        graph, stream = torch.cuda.CUDAGraph(keep_graph=True), torch.cuda.Stream()
        with torch.cuda.graph(graph, stream=stream):
            outputs = [f() for f in work.values()]
        loads("capture")
        Driver().nodes(graph.raw_cuda_graph())
        graph.instantiate()
        graph.replay()
        torch.cuda.synchronize()
        loads("replay")
    print(f"captured {len(outputs)} kinds of work")


main()
