"""The packages of one vLLM, for a machine that has torch and no network.

    pack.py pack REQUIREMENTS OUT     downloads wheels, and leaves parts of one archive in OUT, with SHA256SUMS
    pack.py unpack PARTS SITE         on the other machine: lays the archive out as an installation would

Packages that come with torch are left out, and so are packages and kernels that a start without a server, with attention in Triton, does not import.
No file is changed. One is added, since vLLM's package of FlashAttention wants one of two modules of kernels to be there when it is imported.
"""

import argparse
import glob
import hashlib
import lzma
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile

WITH_TORCH = "torch|torchaudio|triton|nvidia.*|cuda.*|numpy|sympy|mpmath|networkx|jinja2|markupsafe|filelock|fsspec|typing.extensions|pip|setuptools"
UNUSED = (
    "numba|llvmlite|ray|flashinfer.*|cupy.*|tilelang|quack.*|nvtx.*|opencv.*|scipy|fastsafetensors|runai.*|humming.*|tokenspeed.*|torchcodec|model.hosting.*|sentry.*"
    "|opentelemetry.*|mcp|gguf|depyf|astor|supervisor|grpcio.*|wheel|z3.solver|ninja|hf.xet|pygments|dnspython|rich"
)
LEFT_OUT = re.compile(
    r"\.(pyi|a|cu|cuh|cpp|h|hpp)$|^vllm/(vllm_flash_attn/.*\.so|_moe_C|_flashmla|_qutlass|_rust|third_party/deep_gemm/)|^pycountry/locales/|^mistral_common/data/"
    r"|^vllm/model_executor/layers/(fused_moe|quantization)/.*\.json$"
)
ADDED = "vllm/vllm_flash_attn/_vllm_fa2_C.py"
PLATFORMS = ["manylinux2014_x86_64", *(f"manylinux_2_{n}_x86_64" for n in (17, 27, 28, 31, 34))]


def wanted(requirements):
    with open(requirements, encoding="utf-8") as f:
        lines = [line.strip() for line in f if "==" in line]
    return [line for line in lines if not re.fullmatch(f"(?i:{WITH_TORCH}|{UNUSED})", line.split("==")[0])]


def download(packages, python, folder):
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest", folder, "--python-version", python]
    for abi in ("cp" + python.replace(".", ""), "abi3", "none"):
        command += ["--abi", abi]
    for platform in PLATFORMS:
        command += ["--platform", platform]
    subprocess.run([*command, *packages], check=True)


def lay_out(wheel, site):
    with zipfile.ZipFile(wheel) as z:
        for name in z.namelist():
            to = re.sub(r"^[^/]+\.data/(purelib|platlib)/", "", name)
            if name.endswith("/") or LEFT_OUT.search(to):
                continue
            path = os.path.join(site, to)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as f:
                f.write(z.read(name))


class Parts:
    """A file in pieces of so many bytes."""

    def __init__(self, folder, size):
        self.folder, self.size, self.left, self.file, self.names = folder, size, 0, None, []

    def write(self, data):
        data = memoryview(data)
        while data:
            if not self.left:
                self.close()
                self.names.append(f"part-{len(self.names):02}")
                self.file, self.left = open(os.path.join(self.folder, self.names[-1]), "wb"), self.size
            n = self.file.write(data[: self.left])
            data, self.left = data[n:], self.left - n

    def close(self):
        if self.file:
            self.file.close()


def sums(folder):
    for path in sorted(glob.glob(os.path.join(folder, "part-*"))):
        with open(path, "rb") as f:
            yield f"{hashlib.file_digest(f, 'sha256').hexdigest()}  {os.path.basename(path)}\n"


def pack(args):
    os.makedirs(args.to, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=args.to) as work:
        wheels, site = os.path.join(work, "wheels"), os.path.join(work, "site")
        download(wanted(args.of), args.python, wheels)
        for wheel in sorted(glob.glob(os.path.join(wheels, "*.whl"))):
            lay_out(wheel, site)
        with open(os.path.join(site, ADDED), "w", encoding="utf-8") as f:
            f.write('"""Stands for kernels that did not come along: attention here is Triton\'s."""\n')
        parts = Parts(args.to, args.mib << 20)
        with lzma.LZMAFile(parts, "w", preset=4) as out, tarfile.open(fileobj=out, mode="w|") as tar:
            tar.add(site, arcname=".")
        parts.close()
    with open(os.path.join(args.to, "SHA256SUMS"), "w", encoding="utf-8") as f:
        f.writelines(sums(args.to))
    print(f"{len(parts.names)} parts in {args.to}")


def unpack(args):
    with open(os.path.join(args.of, "SHA256SUMS"), encoding="utf-8") as f:
        want = f.read()
    if "".join(sums(args.of)) != want:
        sys.exit(f"unpack {args.of}: a part is missing or damaged (bring all of them)")
    names = sorted(glob.glob(os.path.join(args.of, "part-*")))
    with tempfile.TemporaryFile() as whole:
        for name in names:
            with open(name, "rb") as f:
                whole.write(f.read())
        whole.seek(0)
        with tarfile.open(fileobj=whole, mode="r:xz") as tar:
            tar.extractall(args.to + ".new", filter="data")
    os.rename(args.to + ".new", args.to)  # all of it, or none


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("do", choices=["pack", "unpack"])
    p.add_argument("of", help="list of requirements, or folder of parts")
    p.add_argument("to", help="folder for parts, or for the packages")
    p.add_argument("--python", default="3.12", help="of the other machine")
    p.add_argument("--mib", type=int, default=45, help="size of a part")
    args = p.parse_args()
    {"pack": pack, "unpack": unpack}[args.do](args)


if __name__ == "__main__":
    main()
