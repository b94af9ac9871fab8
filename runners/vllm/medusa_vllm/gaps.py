"""The parts of a memory range that no known range covers.

In: addresses and sizes. Out: the same. Fails: never.
"""


def gaps(address, size, known):
    """(address, size) of the parts of a range in which none of the known (address, size) lies."""
    end = address + size
    for start, n in sorted(known):
        if start >= end or start + n <= address:
            continue
        if start > address:
            yield address, start - address
        address = max(address, start + n)
    if address < end:
        yield address, end - address
