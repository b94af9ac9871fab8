"""The test's operators in the processes of `vllm serve`, which load vLLM's plug-ins and no program of the test.

In: this folder in PYTHONPATH. Out: as engine.py's. Fails: as the operators do.
"""

import os
import sys


def install():
    sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    import aten
    import experts
    import kernels

    aten.install()
    kernels.install()
    experts.install()
    sleep()


def sleep():
    """vLLM takes any runtime that the process has loaded for sleep mode's copies, torchvision's own for one, which refuses a simulated driver."""
    from vllm.device_allocator import cumem
    from vllm.distributed.device_communicators.cuda_wrapper import CudaRTLibrary

    cumem.libcudart = CudaRTLibrary("libcudart.so.13")
