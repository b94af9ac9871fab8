"""check_use: each way in which Triton falls back is seen."""

import contextlib
import io
import json
import pathlib
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
import check_use  # noqa: E402


class Test(unittest.TestCase):
    def setUp(self):
        self.cache = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.cache)
        self.library = self.cache / "libdevice.bc"
        self.library.write_bytes(b"library")

    def kernel(self, name, code=b"PTX" + check_use.MARK, libraries=None):
        folder = self.cache / name
        folder.mkdir()
        libraries = [["libdevice", str(self.library)]] if libraries is None else libraries
        (folder / f"{name}.json").write_text(json.dumps({"triton_version": "3.6.0", "extern_libs": libraries}))
        (folder / f"__grp__{name}.json").write_text(json.dumps({"child_paths": {}}))
        if code is not None:
            (folder / f"{name}.cubin").write_bytes(code)

    def check(self):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = check_use.main(str(self.library), str(self.cache))
        return status, out.getvalue(), err.getvalue()

    def test_all_is_well(self):
        self.kernel("a")
        self.kernel("b")
        self.assertEqual(self.check(), (0, "check_use: 2 kernels, 0 complaints\n", ""))

    def test_bundled_assembler(self):
        self.kernel("a")
        self.kernel("b", code=b"\x7fELF machine code")
        status, _, err = self.check()
        self.assertEqual(status, 1)
        self.assertIn("b.cubin: assembled by a program other than the stand-in", err)
        self.assertNotIn("a.cubin", err)

    def test_bundled_libdevice(self):
        self.kernel("a", libraries=[["libdevice", "/venv/triton/libdevice.10.bc"]])
        status, _, err = self.check()
        self.assertEqual(status, 1)
        self.assertIn("linked with /venv/triton/libdevice.10.bc", err)

    def test_unnamed_and_further_libraries(self):
        self.kernel("a", libraries=[])
        self.kernel("b", libraries=[["libdevice", str(self.library)], ["other", "/other.bc"]])
        status, _, err = self.check()
        self.assertEqual(status, 1)
        self.assertIn("unnamed", err)
        self.assertIn("/other.bc", err)

    def test_no_code_and_no_kernel(self):
        self.assertEqual(self.check()[0], 1)
        self.kernel("a", code=None)
        self.assertEqual(self.check()[0], 1)


if __name__ == "__main__":
    unittest.main()
