"""The user's setting of an elastic KV cache.

In: MEDUSA_VLLM_KV. Out: bytes. Fails: ValueError for an invalid setting.
"""

from . import contract

ELASTIC = "elastic"


def asked(setting):
    """Whether the cache is to be elastic, and its most bytes. None: as many as are free."""
    kind, _, size = setting.partition(":")
    if not setting:
        return False, None
    if kind != ELASTIC or (":" in setting and not size.isdecimal()):
        raise ValueError(f"{contract.ENV_VLLM_KV}={setting} is neither {ELASTIC} nor {ELASTIC}:BYTES")
    return True, int(size) if size else None
