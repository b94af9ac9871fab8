"""What a number of bytes pays for in an elastic KV cache.

In: MEDUSA_VLLM_KV, and the bytes of a block in each layer. Out: pages and blocks. Fails: ValueError for a setting that is none.
"""

from . import contract

PAGE = 2 << 20  # the driver's physical memory comes in these
ELASTIC = "elastic"


def asked(setting):
    """Whether the cache is to be elastic, and of how many bytes at most; None: as many as there are."""
    kind, _, size = setting.partition(":")
    if not setting:
        return False, None
    if kind != ELASTIC or (":" in setting and not size.isdecimal()):
        raise ValueError(f"{contract.ENV_VLLM_KV}={setting} is neither {ELASTIC} nor {ELASTIC}:BYTES")
    return True, int(size) if size else None


def pages_for(size):
    return -(-size // PAGE)


def blocks_in(total, sizes, most):
    """The most blocks for which all layers have memory, if so many bytes are mapped in whole pages. sizes: bytes of a block, by layer."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        # mutant: bytes that blocks need in whole pages
        fits = sum(pages_for(middle * size) for size in sizes) * PAGE <= total
        low, high = (middle, high) if fits else (low, middle - 1)
    return low
