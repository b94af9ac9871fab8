"""Tests of starts that MEDUSA_ARTIFACT switches on, with a stand-in for the command. They need no torch."""

import contextlib
import importlib
import io
import os
import stat
import sys
import tempfile
import types
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.join(HERE, "..", "python", "medusa_graphs")


def load():
    """The module without its package, which imports torch."""
    package = types.ModuleType("medusa_graphs")
    package.__path__ = [PACKAGE]
    with mock.patch.dict(sys.modules, {"medusa_graphs": package}):
        for name in ("contract", "attach"):
            sys.modules.pop(f"medusa_graphs.{name}", None)
        return importlib.import_module("medusa_graphs.attach")


class Attach(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.attach = folder.name, load()
        patch = mock.patch.dict(os.environ, {"MEDUSA_ARTIFACT": "/a.medusa", "PATH": f"{self.folder}:{os.environ['PATH']}", "GONE": "1"})
        patch.start()
        self.addCleanup(patch.stop)
        for name in ("MEDUSA_RUN", "MEDUSA_STRICT"):
            os.environ.pop(name, None)

    def run_with(self, script):
        """Attaches with a command of this text, and returns what was printed."""
        path = os.path.join(self.folder, "medusa")
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"#!/bin/sh\n{script}\n")
        os.chmod(path, stat.S_IRWXU)
        said = io.StringIO()
        with contextlib.redirect_stderr(said), mock.patch.object(self.attach, "_HERE", os.path.join(self.folder, "a", "b", "c", "d", "e")), \
                mock.patch.object(self.attach.sysconfig, "get_path", lambda _: self.folder):
            self.attach.attach()
        return said.getvalue()

    def end(self):
        keeper = self.attach._keeper
        keeper.stdin.close()
        keeper.stdout.close()
        return keeper.wait(10)

    def test_environment(self):
        said = self.run_with("""echo '{"MEDUSA_RUN": "restore", "MEDUSA_ARTIFACT": "/b.medusa", "GONE": null}'; cat >/dev/null; exit 7""")
        self.assertEqual((said, os.environ["MEDUSA_RUN"], os.environ["MEDUSA_ARTIFACT"], os.environ.get("GONE")), ("", "restore", "/b.medusa", None))
        self.assertTrue(self.attach.attached() and not self.attach.wanted())
        self.assertIsNone(self.attach._keeper.poll())  # it stays until its input ends
        self.assertEqual(self.end(), 7)

    def test_without_the_variable(self):
        del os.environ["MEDUSA_ARTIFACT"]
        self.assertEqual(self.run_with("exit 1"), "")
        self.assertFalse(self.attach.attached())

    def test_under_a_command(self):
        os.environ["MEDUSA_RUN"] = "record"
        self.assertEqual(self.run_with("exit 1"), "")
        self.assertFalse(self.attach.attached())

    def test_failure_is_a_native_start(self):
        said = self.run_with("exit 9")
        self.end()
        self.assertIn("medusa: native start: internal: ", said)
        self.assertIn("exit status 9", said)
        self.assertNotIn("MEDUSA_ARTIFACT", os.environ)
        self.assertIn("exit status 9", os.environ["MEDUSA_NATIVE"])

    def test_strict(self):
        os.environ["MEDUSA_STRICT"] = "1"
        with self.assertRaises(SystemExit) as ended:
            self.run_with("exit 5")
        self.end()
        self.assertEqual(ended.exception.code, 5)

    def test_strict_without_a_command(self):
        os.environ["MEDUSA_STRICT"] = "1"
        with self.assertRaises(SystemExit) as ended, contextlib.redirect_stderr(io.StringIO()):
            self.attach.native("unsupported", "x")
        self.assertEqual(ended.exception.code, 3)

    def test_no_command(self):
        said = io.StringIO()
        with contextlib.redirect_stderr(said), mock.patch.object(self.attach, "_command", lambda: None):
            self.attach.attach()
        self.assertIn("no medusa beside this package", said.getvalue())

    def test_versions(self):
        def at(version, place):
            return types.SimpleNamespace(version=version, locate_file=lambda _: place)

        self.assertIsNone(self.attach.twice([]))
        self.assertIsNone(self.attach.twice([at("1.0", "/a"), at("1.0", "/b")]))
        self.assertEqual(self.attach.twice([at("1.0", "/a"), at("0.9", "/b")]), "several versions of Medusa are installed: 1.0 in /a, 0.9 in /b")


if __name__ == "__main__":
    unittest.main()
