"""Kernels of closed libraries have to show more than equal graphs: how they were found, and that their semaphores work.

In: the reports of library_engine.py, native, restored, and restored without triggering layers, and how the plug-in says that
kernels were found. Out: a list of differences.
"""

# Each library's kernel here, by the number of its graph, and how many marks it has to leave: a product one for each
# tile of 64 columns, in its first row.
LIBRARIES = {"1": ("libcublas.so", "medusa_gemm_splitk", 4), "2": ("libcublasLt.so", "medusa_gemm_splitk", 4), "3": ("libcudnn.so", "medusa_conv", 1)}


def found(kernels, how):
    """The libraries whose kernel was found in that way."""
    return {
        library
        for library, kernel, _ in LIBRARIES.values()
        if any(h == how and name.startswith(kernel) and library + "." in module for h, name, module in kernels)
    }


def differences(native, restored, untriggered):
    out = []
    everywhere = {library for library, _, _ in LIBRARIES.values()}
    for (report, kernels), how in ((restored, "triggered"), (untriggered, "object")):
        if report["start"] != "restored" or found(kernels, how) != everywhere:
            out.append(f"libraries: start {report['start']}, kernels {how}: {sorted(found(kernels, how))} of {sorted(everywhere)}: {kernels}")
        if report["outputs"] != native["outputs"]:
            out.append(f"libraries: outputs {report['outputs']}, natively {native['outputs']}")
    for number, (library, _, marks) in LIBRARIES.items():
        for replay, values in enumerate(native["outputs"][number]):
            if len(values) != marks:
                out.append(f"libraries: {library}: replay {replay} left {values}, want {marks} marks")
    return out
