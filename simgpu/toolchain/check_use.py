"""Says whether all kernels in caches of Triton were made by this tool chain.

Triton silently takes its bundled ptxas if the one of TRITON_PTXAS_PATH fails, and its bundled libdevice if TRITON_LIBDEVICE_PATH is not
set. So a run that is to use the tool chain begins with empty caches and ends with this check.

    check_use.py LIBDEVICE CACHE...

In: the device library, and folders with Triton's or Inductor's caches. Out: the number of kernels, status 0. Fails: status 1 and a line for each
kernel that was assembled by another program or linked with another library, and if there is no kernel at all.
"""

import json
import pathlib
import sys

MARK = b"// Assembled by the stand-in of the simulated GPU\n\0"


def complaints(metadata, libdevice):
    """Yields the faults of the kernel that this file of Triton's describes."""
    code = metadata.with_suffix(".cubin")
    if not code.exists():
        yield f"{code}: there is no code beside {metadata.name}"
    elif not code.read_bytes().endswith(MARK):
        yield f"{code}: assembled by a program other than the stand-in"
    libraries = dict(json.loads(metadata.read_text()).get("extern_libs") or [])
    linked = libraries.get("libdevice")
    if not linked or pathlib.Path(linked).resolve() != libdevice.resolve():
        yield f"{metadata}: linked with {linked or 'an unnamed libdevice'}"
    for name in sorted(set(libraries) - {"libdevice"}):
        yield f"{metadata}: linked with {libraries[name]}"


def kernels(cache):
    """Yields the metadata of each kernel. Groups of files, which Triton names __grp__, are lists of the same files."""
    for path in sorted(cache.rglob("*.json")):
        if not path.name.startswith("__grp__") and "triton_version" in json.loads(path.read_text()):
            yield path


def main(libdevice, *caches):
    found = [path for cache in caches for path in kernels(pathlib.Path(cache))]
    wrong = [line for path in found for line in complaints(path, pathlib.Path(libdevice))]
    for line in wrong:
        print(f"check_use: {line}", file=sys.stderr)
    if not found:
        print(f"check_use: {' '.join(caches)}: no kernel of Triton's", file=sys.stderr)
    print(f"check_use: {len(found)} kernels, {len(wrong)} complaints")
    return 1 if wrong or not found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
