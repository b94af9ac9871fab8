"""The generated stand-ins: every function that a program imports is there, and functions that return text return text."""

import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
STANDINS = os.path.join(ROOT, "simgpu", "standins")
PROGRAM = """
const char *cublasGetStatusString(int);
const char *cublasGetStatusName(int);
const char *cusparseGetErrorString(int);
int cublasZgemm_v2(void);
int cuptiGetResultString(int, const char **);
int main(void) { const char *s; return !cublasGetStatusString(0) + !cublasGetStatusName(0) + !cusparseGetErrorString(0) + cublasZgemm_v2() + cuptiGetResultString(0, &s); }
"""


def run(*command):
    subprocess.run(command, check=True)


class Generate(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def generate(self, *folders):
        run(sys.executable, os.path.join(STANDINS, "generate.py"), self.path("out"), "12", *folders)
        with open(self.path("out", "sonames"), encoding="utf-8") as f:
            return f.read().split()

    def load(self, soname):
        library = self.path(soname)
        run("cc", "-shared", "-fPIC", "-I" + STANDINS, "-Wl,--version-script=" + self.path("out", soname + ".map"), "-o", library,
            self.path("out", soname + ".c"))
        return ctypes.CDLL(library)

    def test_imports_of_a_program(self):
        os.mkdir(self.path("program"))
        with open(self.path("program.c"), "w", encoding="utf-8") as f:
            f.write(PROGRAM)
        # Libraries with these functions to link with, as the vendor's would be.
        needed = []
        for soname in ("libcublas.so.12", "libcusparse.so.12", "libcupti.so.12"):
            functions = re.findall(rf"(?m)^[a-z *]+\b({soname[3:].split('.')[0]}\w+)\(", PROGRAM)
            with open(self.path(soname + ".c"), "w", encoding="utf-8") as f:
                f.write("".join(f"void {name}(void) {{}}\n" for name in functions))
            needed.append(self.path(soname))
            run("cc", "-shared", "-fPIC", "-o", needed[-1], "-Wl,-soname," + soname, self.path(soname + ".c"))
        run("cc", "-o", self.path("program", "program"), self.path("program.c"), *needed)
        self.assertEqual(self.generate(self.path("program")),
                         ["libcublas.so.12", "libcublasLt.so.12", "libcudnn.so.9", "libcupti.so.12", "libcusparse.so.12"])
        cublas = self.load("libcublas.so.12")
        for function in (cublas.cublasGetStatusString, cublas.cublasGetStatusName, self.load("libcusparse.so.12").cusparseGetErrorString):
            function.restype = ctypes.c_char_p
            self.assertIn(b"stub", function(0))
        self.assertEqual(cublas.cublasZgemm_v2(), 15)
        text = ctypes.c_char_p()
        self.assertEqual(self.load("libcupti.so.12").cuptiGetResultString(0, ctypes.byref(text)), 15)

    def test_without_programs(self):
        self.assertEqual(self.generate(), ["libcublas.so.12", "libcublasLt.so.12", "libcudnn.so.9"])


if __name__ == "__main__":
    unittest.main()
