"""Writes the C sources of stand-ins for the NVIDIA libraries that programs link.

In: the output folder, the major version of CUDA, and the folders of programs and shared objects (torch's, and those of an
engine on it), if any. Out: one SONAME.c and SONAME.map for each library that they need, and for each library written by
hand beside this file. They have every symbol that the programs import from the library, as a weak function that prints its
name on standard error and returns the library's own "not supported" status. Functions written by hand override them. Fails: an import belongs to no library of the table, which can happen with a newer torch; add a row for it.

The lists of symbols are read from the programs each time, so the repository has none of them.
"""

import os
import re
import subprocess
import sys

# soname prefix: (pattern of its symbols, status, the status's name)
LIBRARIES = {
    "libcublas.so": (r"cublas(?!Lt)", 15, "CUBLAS_STATUS_NOT_SUPPORTED"),
    "libcublasLt.so": (r"cublasLt", 15, "CUBLAS_STATUS_NOT_SUPPORTED"),
    "libcudnn.so": (r"cudnn", 3000, "CUDNN_STATUS_NOT_SUPPORTED"),
    "libcufft.so": (r"cufft", 16, "CUFFT_NOT_SUPPORTED"),
    "libcufile.so": (r"cuFile", 5001, "CU_FILE_DRIVER_NOT_INITIALIZED"),
    "libcupti.so": (r"cupti", 15, "CUPTI_ERROR_NOT_INITIALIZED"),
    "libcurand.so": (r"curand", 101, "CURAND_STATUS_NOT_INITIALIZED"),
    "libcusolver.so": (r"cusolver", 9, "CUSOLVER_STATUS_NOT_SUPPORTED"),
    "libcusparse.so": (r"cusparse(?!Lt)", 10, "CUSPARSE_STATUS_NOT_SUPPORTED"),
    "libcusparseLt.so": (r"cusparseLt", 10, "CUSPARSE_STATUS_NOT_SUPPORTED"),
    "libnccl.so": (r"nccl", 2, "ncclSystemError"),
    "libnvrtc.so": (r"nvrtc", 11, "NVRTC_ERROR_INTERNAL_ERROR"),
    "libnvJitLink.so": (r"nvJitLink", 6, "NVJITLINK_ERROR_INTERNAL"),
    "libnvshmem_host.so": (r"nvshmem", 1, "NVSHMEMX_ERROR_INTERNAL"),
    "libnvToolsExt.so": (r"nvtx", 0, ""),
}
# Provided elsewhere: by the runtime in simgpu/cudart and by the driver.
ELSEWHERE = ("libcudart.so", "libcuda.so")
# Written by hand: sonames, with the major version of CUDA if theirs is the same.
BY_HAND = ("libcublas.so.{cuda}", "libcublasLt.so.{cuda}", "libcudnn.so.9")
# Functions that return text. CUPTI's return it through a pointer.
TEXT = re.compile(r"(?!cupti).*((Error|Result|Status)(Name|String)|GetLastError(String)?)$")


def dynamic(path, *args):
    return subprocess.run([*args, path], capture_output=True, text=True, check=True).stdout


def library_of(soname):
    for prefix, row in LIBRARIES.items():
        if soname.startswith(prefix):
            return row
    return None


def is_elf(path):
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as f:
        return f.read(4) == b"\x7fELF" and int.from_bytes(f.read(14)[12:], "little") in (2, 3)  # a program or a shared object


def survey(cuda, folders):
    """The NVIDIA sonames that programs need; for each, the symbols that they import and the name of the symbols' version."""
    needed, imports, versions = set(), set(), {}
    for path in sorted(os.path.join(folder, name) for folder in folders for name in os.listdir(folder)):
        if not is_elf(path):
            continue
        needed.update(re.findall(r"\(NEEDED\).*\[(.*?)\]", dynamic(path, "readelf", "-dW")))
        for soname, names in re.findall(r"File: (\S+)((?:(?!File:).)*)", dynamic(path, "readelf", "-VW"), re.S):
            if library_of(soname):
                versions.update((name, soname) for name in re.findall(r"Name: (\S+)", names))
        imports.update(line.split()[-1] for line in dynamic(path, "nm", "-D", "--undefined-only").splitlines())
    needed.update(soname.format(cuda=cuda) for soname in BY_HAND if not any(n.startswith(soname.split(".")[0] + ".so") for n in needed))
    sonames = {s: set() for s in needed if library_of(s)}
    for symbol in imports:
        name, _, version = symbol.partition("@")
        version = version.lstrip("@")
        if versions.get(version) in sonames:
            sonames[versions[version]].add(name)
        elif not version and not name.startswith("_"):
            for soname in sonames:
                if re.match(library_of(soname)[0] + "[A-Z]", name):
                    sonames[soname].add(name)
        elif library_of(version) or (version.startswith("libcu") and not version.startswith(ELSEWHERE)):
            sys.exit(f"generate stubs: {symbol} belongs to no needed library (add a row to the table)")
    return sonames, {soname: name for name, soname in versions.items()}


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def source(soname, symbols, status, status_name):
    out = [f"/* Generated for {soname}. */", '#include "stub.h"', ""]
    for name in sorted(symbols):
        if TEXT.match(name):
            out.append(f'WEAK const char *{name}(void) {{ return "{soname}: a stub without this function"; }}')
        else:
            out.append(f'WEAK int {name}(void) {{ return stub_missing("{name}", {status}, "{status_name}"); }}')
    return "\n".join(out) + "\n"


def main(target, cuda, *folders):
    os.makedirs(target, exist_ok=True)
    sonames, versions = survey(cuda, folders)
    for soname, symbols in sonames.items():
        pattern, status, status_name = library_of(soname)
        write(os.path.join(target, soname + ".c"), source(soname, symbols, status, status_name))
        exported = re.sub(r"\(.*?\)", "", pattern)
        write(os.path.join(target, soname + ".map"), f"{versions.get(soname, soname)} {{\nglobal:\n\t{exported}*;\nlocal:\n\t*;\n}};\n")
    write(os.path.join(target, "sonames"), "".join(s + "\n" for s in sorted(sonames)))


if __name__ == "__main__":
    main(*sys.argv[1:])
