"""make pool-test: the facts that recordings note, and programs that run as the interpreter runs them.

In: medusa_pool beside this folder. Out: unittest's. Fails: as unittest does.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from medusa_pool import recorded  # noqa: E402


class Recorded(unittest.TestCase):
    def record(self, work):
        os.environ["POOL_SET"] = "here"
        os.environ.pop("POOL_UNSET", None)
        with recorded.Recording() as r:
            work()
        self.assertIs(type(os.environ), recorded.PLAIN)
        self.assertIs(type(sys.argv), list)
        return r

    def test_reads(self):
        for work in (
            lambda: os.environ["POOL_SET"],
            lambda: os.environ.get("POOL_SET"),
            lambda: os.getenv("POOL_SET"),
            lambda: "POOL_SET" in os.environ,
            lambda: os.environb[b"POOL_SET"],
            lambda: os.environ.setdefault("POOL_SET", "other"),
            lambda: os.environ.pop("POOL_SET"),
        ):
            r = self.record(work)
            self.assertEqual(r.reads, {b"POOL_SET": b"here"})
            self.assertFalse(r.whole or r.folder or r.arguments)
        self.assertEqual(self.record(lambda: os.environ.get("POOL_UNSET")).reads, {b"POOL_UNSET": None})
        self.assertEqual(self.record(lambda: os.path.expandvars("$POOL_SET")).reads, {b"POOL_SET": b"here"})

    def test_own(self):
        def work():
            os.environ["POOL_UNSET"] = "1"
            return os.environ["POOL_UNSET"]

        r = self.record(work)
        self.assertEqual(r.reads, {})
        self.assertEqual(r.set.get(b"POOL_UNSET"), b"1")

    def test_whole(self):
        for work in (
            lambda: list(os.environ),
            lambda: dict(os.environ),
            lambda: os.environ.copy(),
            lambda: list(os.environ.items()),
            lambda: len(os.environ),
            lambda: sorted(os.environ.values()),
        ):
            r = self.record(work)
            self.assertTrue(r.whole)
            self.assertEqual(r.reads, {})

        def twice():
            os.environ.copy()
            return os.environ["POOL_SET"], os.environ["POOL_SET"]

        self.assertIn(b"POOL_SET", self.record(twice).reads)

    def test_folder_and_arguments(self):
        self.assertTrue(self.record(lambda: os.getcwd()).folder)
        self.assertTrue(self.record(lambda: os.path.abspath("x")).folder)
        for work in lambda: sys.argv[0], lambda: list(sys.argv), lambda: len(sys.argv), lambda: "--help" in sys.argv, lambda: sys.argv[1:]:
            self.assertTrue(self.record(work).arguments)
        self.assertFalse(self.record(lambda: os.environ.get("POOL_SET")).folder)


TELLS = """
import json, sys
spec = __spec__ and __spec__.name
print(json.dumps([sys.argv, sys.path[0], __name__, globals().get("__file__"), spec, sorted(k for k in globals() if k.startswith("__") and k != "__annotations__")]))
import __main__
assert __main__.__dict__ is globals()
"""


class Program(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)

    def write(self, name, text):
        path = os.path.join(self.dir.name, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def same(self, *command):
        env = dict(os.environ, PYTHONPATH=os.path.dirname(HERE))
        cold = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False, cwd=self.dir.name, env=env)
        text = f"import sys; del sys.path[0]; from medusa_pool import program; program.run({json.dumps(list(command))})"
        pooled = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False, cwd=self.dir.name, env=env)
        self.assertEqual((pooled.stdout, pooled.stderr, pooled.returncode), (cold.stdout, cold.stderr, cold.returncode))
        return cold

    def test_what_a_program_sees(self):
        self.write("tells.py", TELLS)
        self.write("package/__init__.py", "")
        self.write("package/__main__.py", TELLS)
        for command in (["tells.py", "a"], [os.path.join(self.dir.name, "tells.py")], ["-m", "tells", "a"], ["-m", "package"], ["-c", TELLS, "a"], ["package", "a"]):
            with self.subTest(command=command):
                self.assertIn("__main__", self.same(*command).stdout)

    def test_ends(self):
        for text in (
            "import sys; sys.exit(3)", "import sys; sys.exit('text')", "1/0", "def f():\n    raise ValueError('x')\nf()", "raise KeyboardInterrupt",
            "import os; os.abort()", "import atexit; atexit.register(print, 'end'); raise SystemExit", "import sys; sys.excepthook = lambda *a: print('own', a[0]); 1/0",
            "this is no program",
        ):  # fmt: skip
            with self.subTest(text=text):
                self.write("ends.py", text)
                self.same("ends.py")
                self.same("-m", "ends")


if __name__ == "__main__":
    unittest.main()
