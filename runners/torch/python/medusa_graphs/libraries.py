"""Workspaces of cuBLAS and cuBLASLt, made before a framework's other memory.

In: a session, the stream that the engine computes on, as the current one, and other streams that it computes on. Out: torch's workspaces for
those streams, named. Torch takes one from the allocator that is in use at a stream's first product. That would be the pool of a triggering
layer in a restored start, and one of the engine's own segments in a native one. Fails: as torch does.
"""

import torch

from .contract import INPUT


def owned():
    """Address and size of each block that is in use."""
    found = set()
    for segment in torch.cuda.memory_snapshot():
        address = segment["address"]
        for block in segment["blocks"]:
            # mutant: blocks that libraries keep
            if block["state"] == "active_allocated":
                found.add((address, block["size"]))
            address += block["size"]
    return found


def multiply():
    """A product of each library. Their results are thrown away."""
    x = torch.ones((16, 16), dtype=torch.float16, device="cuda")
    torch.mm(x, x)
    torch.addmm(x[0], x, x)
    torch.cuda.current_stream().synchronize()


def workspaces(session, streams=()):
    """Makes and names the workspaces. If a library relies on a workspace's contents between products, they are zeros, so verification
    fills it with zeros."""
    made = []
    # mutant: workspaces of other streams
    for stream in (torch.cuda.current_stream(), *streams):
        before = owned()
        with torch.cuda.stream(stream), torch.inference_mode():
            multiply()
        made += sorted(owned() - before, key=lambda block: (block[1], block[0]))
    for i, (address, size) in enumerate(made):
        session.memory(f"library workspace {i}", address, size, INPUT, lo=0, hi=1)
