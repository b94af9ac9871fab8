"""Triton compiles each function of the device library with the tool chain, and the simulated GPU computes it.

    triton_functions.py TOOLCHAIN

In: the folder with ptxas and libdevice.bc; a driver that the dynamic linker finds. Needs triton, and neither PyTorch nor a GPU. Out: one line.
Fails: a function misses its bound; a kernel was made with another assembler or library; or Triton's fallback, which this program provokes
on purpose at the end, goes unseen.
"""

import ctypes
import importlib.util
import json
import math
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

COUNT = 256  # arguments of each function, and threads
BOUND = {"fp32": 1.0, "fp64": 8.0}  # units of the last place; single precision is rounded from double precision
BOUND_OF = {("pow", "fp64"): 1000, ("lgamma", "fp64"): 400, ("erfc", "fp64"): 400}  # as in libdevice_test.c
RANGES = {
    "exp": (-80, 80), "exp2": (-120, 120), "expm1": (-5, 80), "log": (1e-30, 1e30), "log2": (1e-30, 1e30), "log10": (1e-30, 1e30),
    "log1p": (-0.9, 1e10), "sin": (-1e6, 1e6), "cos": (-1e6, 1e6), "tan": (-1e4, 1e4), "asin": (-1, 1), "acos": (-1, 1), "atan": (-1e5, 1e5),
    "sinh": (-60, 60), "cosh": (-60, 60), "tanh": (-12, 12), "asinh": (-1e10, 1e10), "acosh": (1, 1e10), "atanh": (-0.99, 0.99),
    "erf": (-4, 4), "erfc": (-4, 1.2), "lgamma": (3, 1e6), "cbrt": (-1e20, 1e20), "sqrt": (0, 1e20), "rsqrt": (1e-20, 1e20),
    "floor": (-1e6, 1e6), "ceil": (-1e6, 1e6), "trunc": (-1e6, 1e6), "nearbyint": (-1e6, 1e6), "abs": (-1e6, 1e6),
    "pow": (0.1, 20), "fmod": (0.1, 1e4), "atan2": (-100, 100), "hypot": (-1e10, 1e10), "copysign": (-5, 5),
}  # fmt: skip
TWO = ("pow", "fmod", "atan2", "hypot", "copysign")
RIGHT = {"rsqrt": lambda x: 1 / math.sqrt(x), "abs": abs, "nearbyint": lambda x: float(round(x)), "exp2": lambda x: 2.0**x}
KERNEL = """
@triton.jit
def {name}_{dtype}(x, y, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, libdevice.{name}({args}))
"""


def environment(toolchain, cache):
    env = {"TRITON_PTXAS_PATH": toolchain / "ptxas", "TRITON_LIBDEVICE_PATH": toolchain / "libdevice.bc", "TRITON_CACHE_DIR": cache}
    return {name: str(value) for name, value in env.items()}


def kernels(folder):
    """Writes a module with one kernel a function and precision, as Triton wants its source in a file."""
    text = "import triton\nimport triton.language as tl\nfrom triton.language.extra.cuda import libdevice\n"
    for dtype in BOUND:
        for name in RANGES:
            args = "tl.load(x + i), tl.load(y + i)" if name in TWO else "tl.load(x + i)"
            text += KERNEL.format(name=name, dtype=dtype, args=args)
    path = folder / "kernels.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("kernels", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Device:
    def __init__(self):
        self.lib = ctypes.CDLL("libcuda.so.1")
        context = ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxSetCurrent", context)

    def call(self, name, *args):
        status = getattr(self.lib, name)(*args)
        if status:
            raise RuntimeError(f"{name}: error {status}")

    def memory(self, data):
        at = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(at), ctypes.c_size_t(len(data)))
        self.call("cuMemcpyHtoD_v2", at, data, ctypes.c_size_t(len(data)))
        return at

    def run(self, compiled, buffers, out, size):
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), compiled.asm["cubin"])
        self.call("cuModuleGetFunction", ctypes.byref(function), module, compiled.metadata.name.encode())
        values = [*buffers, ctypes.c_uint64(0), ctypes.c_uint64(0)]  # two scratch pointers of Triton's own
        params = (ctypes.c_void_p * len(values))(*(ctypes.addressof(v) for v in values))
        threads = 32 * compiled.metadata.num_warps
        self.call("cuLaunchKernel", function, 1, 1, 1, threads, 1, 1, compiled.metadata.shared, None, params, None)
        result = ctypes.create_string_buffer(size)
        self.call("cuMemcpyDtoH_v2", result, out, ctypes.c_size_t(size))
        return result.raw


def place(x, dtype):
    digits, least = (23, -126) if dtype == "fp32" else (52, -1022)
    return 2.0 ** (max(math.frexp(x)[1] - 1, least) - digits) if x else 2.0 ** (least - digits)


def worst(device, compiled, name, dtype):
    """The largest error in units of the last place."""
    code = f"{COUNT}{'f' if dtype == 'fp32' else 'd'}"
    low, high = RANGES[name]
    x = [low + (high - low) * ((i * 0.6180339887498949) % 1) for i in range(COUNT)]
    y = [1.5 + 3 * ((i * 0.7548776662466927) % 1) for i in range(COUNT)]
    raw = [struct.pack(code, *x), struct.pack(code, *y), bytes(struct.calcsize(code))]
    x, y = struct.unpack(code, raw[0]), struct.unpack(code, raw[1])
    buffers = [device.memory(data) for data in raw]
    got = struct.unpack(code, device.run(compiled, buffers, buffers[2], len(raw[2])))
    right = RIGHT.get(name) or getattr(math, name)
    want = [right(a, b) if name in TWO else right(a) for a, b in zip(x, y)]
    return max(abs(g - w) / place(w, dtype) if g == g else math.inf for g, w in zip(got, want))


def compiled_kernels(folder):
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    module = kernels(folder)
    for dtype in BOUND:
        for name in RANGES:
            signature = {"x": f"*{dtype}", "y": f"*{dtype}", "out": f"*{dtype}", "N": "constexpr"}
            source = ASTSource(fn=getattr(module, f"{name}_{dtype}"), signature=signature, constexprs={(3,): COUNT})
            yield name, dtype, triton.compile(source, target=GPUTarget("cuda", 80, 32))


def check_use(toolchain, cache):
    program = pathlib.Path(__file__).parent.parent / "check_use.py"
    return subprocess.run([sys.executable, program, toolchain / "libdevice.bc", cache], capture_output=True, text=True)


FALLBACK = """
import importlib.util, pathlib, sys
spec = importlib.util.spec_from_file_location("functions", sys.argv[1])
functions = importlib.util.module_from_spec(spec)
spec.loader.exec_module(functions)
functions.RANGES, functions.BOUND = {"exp": (0, 1)}, {"fp32": 1}
for _ in functions.compiled_kernels(pathlib.Path(sys.argv[2])):
    pass
"""


def fallback(folder, toolchain, what, changes):
    """Compiles one kernel in a process whose environment makes Triton fall back. Returns whether that was seen."""
    cache = folder / what
    cache.mkdir()
    env = {**os.environ, **environment(toolchain, cache), **changes}
    env = {name: value for name, value in env.items() if value is not None}
    run = subprocess.run([sys.executable, "-c", FALLBACK, __file__, str(cache)], env=env, capture_output=True, text=True)
    if run.returncode:
        return "stand-in" in run.stdout + run.stderr
    return check_use(toolchain, cache).returncode == 1


def main(toolchain):
    toolchain = pathlib.Path(toolchain).resolve()
    missed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        cache = folder / "cache"
        cache.mkdir()
        os.environ.update(environment(toolchain, cache))
        device = Device()
        functions = 0
        for name, dtype, compiled in compiled_kernels(folder):
            functions += 1
            error = worst(device, compiled, name, dtype)
            bound = BOUND_OF.get((name, dtype), BOUND[dtype])
            if error > bound:
                print(f"{name} {dtype}: {error:.3g} units of the last place, bound {bound}")
                missed += 1
        use = check_use(toolchain, cache)
        sys.stderr.write(use.stderr)
        missed += use.returncode
        for what, changes in (
            ("bundled assembler", {"TRITON_PTXAS_PATH": str(folder / "missing")}),
            ("bundled libdevice", {"TRITON_LIBDEVICE_PATH": None}),
            ("both", {"TRITON_PTXAS_PATH": None, "TRITON_LIBDEVICE_PATH": None}),
        ):
            if not fallback(folder, toolchain, what, changes):
                print(f"fallback to {what}: not seen")
                missed += 1
    print(f"test-toolchain: {'FAIL' if missed else 'PASS'} device=simulated functions={functions} {use.stdout.strip()}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
