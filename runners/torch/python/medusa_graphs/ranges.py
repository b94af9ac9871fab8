"""Address ranges that stay, while their memory is mapped and unmapped.

In: sizes in bytes, and how many pages each range is to have. Out: addresses of the whole sizes, with memory from their beginning on. Fails: MemoryError with
the driver's call and its number.

A range's first pages are one mapping, which is made with the range and which graphs may refer to. Pages beyond it are mapped and unmapped one by one.
"""

import ctypes

import torch

PAGE = 2 << 20  # bytes, the unit of the driver's physical memory


def pages_for(size):
    return -(-size // PAGE)


def blocks_in(total, sizes, most):
    """The most blocks for which all ranges have memory, if so many bytes are mapped in whole pages. sizes: bytes of a block, by range."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        # mutant: bytes that blocks need in whole pages
        fits = sum(pages_for(middle * size) for size in sizes) * PAGE <= total
        low, high = (middle, high) if fits else (low, middle - 1)
    return low


class Memory:
    """Device memory in the form that torch takes from other libraries. It is plain bytes, because that form has not every dtype."""

    def __init__(self, address, size):
        self.__cuda_array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (address, False), "version": 3, "strides": None}


class _Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class _Properties(ctypes.Structure):
    """CUmemAllocationProp."""

    _fields_ = [("type", ctypes.c_int), ("handles", ctypes.c_int), ("location", _Location), ("security", ctypes.c_void_p), ("flags", ctypes.c_ubyte * 8)]


class _Access(ctypes.Structure):
    """CUmemAccessDesc."""

    _fields_ = [("location", _Location), ("flags", ctypes.c_int)]


class Range:
    """Addresses of so many bytes, with memory for the first pages."""

    def __init__(self, size, least, device, cuda=None):
        self.cuda, self.size, self.pages = cuda or ctypes.CDLL("libcuda.so.1"), pages_for(size) * PAGE, 0
        self.here = _Location(1, device)
        address = ctypes.c_uint64()
        self._call("cuMemAddressReserve", ctypes.byref(address), ctypes.c_size_t(self.size), ctypes.c_size_t(0), ctypes.c_uint64(0), ctypes.c_uint64(0))
        self.address = address.value
        self.map(least)

    def _call(self, name, *args):
        if result := getattr(self.cuda, name)(*args):
            raise MemoryError(f"{name}: driver error {result}")

    def _end(self, pages):
        return ctypes.c_uint64(self.address + pages * PAGE)

    def map(self, pages=1):
        """Maps so many more pages in one piece, and fills them with zeros. The device fills them asynchronously."""
        handle, at, size = ctypes.c_uint64(), self._end(self.pages), ctypes.c_size_t(pages * PAGE)
        properties, access = _Properties(1, 0, self.here), _Access(self.here, 3)
        self._call("cuMemCreate", ctypes.byref(handle), size, ctypes.byref(properties), ctypes.c_uint64(0))
        try:
            self._call("cuMemMap", at, size, ctypes.c_size_t(0), handle, ctypes.c_uint64(0))
        finally:
            self._call("cuMemRelease", handle)
        try:
            self._call("cuMemSetAccess", at, size, ctypes.byref(access), ctypes.c_size_t(1))
            self._call("cuMemsetD8_v2", at, ctypes.c_ubyte(0), size)
        except MemoryError:
            # mutant: page that was mapped in vain
            self._call("cuMemUnmap", at, size)
            raise
        self.pages += pages

    def filled(self):
        """Waits for the zeros. Streams of torch do not wait for the one that writes them."""
        # mutant: zeros that come after the next step
        self._call("cuStreamSynchronize", ctypes.c_void_p())

    def unmap(self):
        """Unmaps the last page."""
        self._call("cuMemUnmap", self._end(self.pages - 1), ctypes.c_size_t(PAGE))
        self.pages -= 1

    def tensor(self, size):
        return torch.as_tensor(Memory(self.address, size), device=torch.device("cuda", self.here.id))


class Ranges:
    """Ranges that grow and shrink together."""

    def __init__(self, sizes, least, device, cuda=None):
        """least: pages of each that are always mapped."""
        self.all = [Range(size, pages, device, cuda) for size, pages in zip(sizes, least, strict=True)]
        self.all[0].filled()

    @property
    def size(self):
        return sum(r.size for r in self.all)

    @property
    def pages(self):
        return [r.pages for r in self.all]

    @property
    def mapped(self):
        return sum(self.pages) * PAGE

    def move(self, wanted):
        """Maps and unmaps until each range has its wanted pages. It goes from range to range, one page at a time, so that an error leaves
        most pages mapped in all ranges."""
        try:
            while self.pages != list(wanted):
                for r, pages in zip(self.all, wanted):
                    if r.pages < pages:
                        r.map()
                    elif r.pages > pages:
                        r.unmap()
        finally:
            self.all[0].filled()

    def resize(self, wanted):
        """The same as move, but an error leaves the pages as they were, as far as the driver allows it. The pages that go must not be in use."""
        before = self.pages
        try:
            self.move(wanted)
        except MemoryError as e:
            try:
                # mutant: resize of ranges that fails half way
                self.move(before)
            except MemoryError as again:
                raise MemoryError(f"{e}, and then {again}") from e
            raise
