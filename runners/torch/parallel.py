"""Tensor parallelism: an engine's ranks, a process and a device each, share the heads and the inner columns of every layer.

As a program: `parallel.py RANKS COMMAND...` starts the command once for each rank, with {rank} in its arguments replaced, and ends as the first
that fails. Under `medusa materialize --ranks-alone` it starts one rank. In: the variables that it sets. Out: Ranks, whose model's layers are added up over all ranks by NCCL. Fails: ModelError for a model that
cannot be shared, RuntimeError if a call of NCCL fails.
"""

import ctypes
import os
import subprocess
import sys
import time

from medusa_graphs import contract

LIBRARY, ID, BYTES = "libnccl.so.2", "ENGINE_NCCL_ID", 128  # the last: of ncclUniqueId
SUM, TYPES = 0, {"float16": 6, "float32": 7, "bfloat16": 9}
SPLIT = tuple(f".{name}_proj" for name in ("q", "k", "v", "gate", "up"))  # layers of which each rank computes other outputs
ADDED = ".o_proj", ".down_proj"  # and those whose outputs are parts of a sum


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * BYTES)]


class Nccl:
    """The library's calls that an engine makes, as methods, which raise."""

    def __init__(self):
        try:
            library = ctypes.CDLL(LIBRARY)
        except OSError:  # it lies among torch's packages, and torch loads it
            import torch  # noqa: F401

            library = ctypes.CDLL(LIBRARY)
        pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
        self.ncclGetUniqueId = self.checked(library.ncclGetUniqueId, pointer)
        self.ncclCommInitRank = self.checked(library.ncclCommInitRank, pointer, number, UniqueId, number)
        self.ncclAllReduce = self.checked(library.ncclAllReduce, pointer, pointer, size, number, number, pointer, pointer)

    @staticmethod
    def checked(function, *types):
        function.argtypes = types

        def call(*args):
            if result := function(*args):
                raise RuntimeError(f"{function.__name__}: result {result}")

        return call


class Ranks:
    """This process's rank among others, or the only one."""

    def __init__(self):
        self.rank, self.count = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
        self.adds = True  # whether layers are added up

    def connect(self, communicators, making):
        """Makes the communicator. All ranks have to call it. A rank that is alone makes none."""
        if communicators.session.alone:
            self.communicator, self.nccl = None, communicators.add(None, None, self.count)
            return
        nccl, self.communicator, unique = Nccl(), ctypes.c_void_p(), UniqueId()
        ctypes.memmove(ctypes.byref(unique), bytes.fromhex(os.environ[ID]), BYTES)
        with making:
            nccl.ncclCommInitRank(ctypes.byref(self.communicator), self.count, unique, self.rank)
        self.nccl = communicators.add(nccl, self.communicator, self.count)

    def share(self, config):
        """Reduces a configuration to one rank's part, or returns why it cannot be shared."""
        parts = {name: getattr(config, name, None) for name in ("num_attention_heads", "num_key_value_heads", "intermediate_size")}
        if config.model_type != "llama" or any(n % self.count for n in parts.values()):
            return f"{config.model_type} with {parts} over {self.count} ranks"
        config.head_dim = config.hidden_size // config.num_attention_heads
        for name, n in parts.items():
            setattr(config, name, n // self.count)
        return None

    def part(self, name, tensor):
        """This rank's part of a layer's weight, and all of any other tensor."""
        layer = name.removesuffix(".weight")
        dim = 0 if layer.endswith(SPLIT) else 1 if layer.endswith(ADDED) else None
        return tensor if dim is None else tensor.chunk(self.count, dim)[self.rank]

    def add_up(self, net):
        import torch  # the process that starts ranks has no use for it

        @torch.library.custom_op("engine::all_reduce", mutates_args=("t",))
        def all_reduce(t: torch.Tensor) -> None:
            """An operator, so that a compiled step keeps the call."""
            if self.adds:
                kind = TYPES[str(t.dtype).removeprefix("torch.")]
                self.nccl.ncclAllReduce(t.data_ptr(), t.data_ptr(), t.numel(), kind, SUM, self.communicator, torch.cuda.current_stream().cuda_stream)

        for name, module in net.named_modules():
            if name.endswith(ADDED):
                module.register_forward_hook(lambda _module, _inputs, out: all_reduce(out))


def ended(processes):
    """The first exit status other than 0, once it is there, or 0 once all have ended."""
    while True:
        codes = [p.poll() for p in processes]
        failed = next((code for code in codes if code), None)
        if failed is not None or None not in codes:
            return failed or 0
        time.sleep(0.01)


def start(rank, count, command, variables):
    """A rank's process."""
    places = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count} | variables
    env = os.environ | {name: str(value) for name, value in places.items()}
    return subprocess.Popen([part.replace("{rank}", str(rank)) for part in command], env=env)


def main(count, *command):
    if os.environ.get(contract.ENV_PEERS):  # the other ranks are not to run
        processes = [start(os.environ[contract.ENV_RANK], count, command, {})]
    else:
        unique = UniqueId()
        Nccl().ncclGetUniqueId(ctypes.byref(unique))
        processes = [start(rank, count, command, {"CUDA_VISIBLE_DEVICES": rank, ID: bytes(unique).hex()}) for rank in range(int(count))]
    code = ended(processes)
    for p in processes:  # an engine ends as a whole
        p.terminate()
        p.wait()
    return code if code >= 0 else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
