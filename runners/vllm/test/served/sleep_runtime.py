"""The runtime that vLLM's sleep mode copies by, on the simulated GPU.

In: this folder in PYTHONPATH, or a call. Out: vLLM's copies go by the runtime that torch uses. Fails: if there is none.

vLLM takes any runtime that the process has loaded. torchvision has one of its own, which refuses a simulated driver.
"""


def install():
    from vllm.device_allocator import cumem
    from vllm.distributed.device_communicators.cuda_wrapper import CudaRTLibrary

    cumem.libcudart = CudaRTLibrary("libcudart.so.13")
