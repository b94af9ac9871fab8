"""Tests of the fingerprint on a small package that is made up for them. They need neither vLLM nor a network."""

import ast
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
TOOL = os.path.join(HERE, "..", "fingerprint")
sys.path[:0] = [os.path.join(HERE, ".."), TOOL]

import names  # noqa: E402
import page  # noqa: E402
import plugin  # noqa: E402
import releases  # noqa: E402
import symbols  # noqa: E402
import tables  # noqa: E402
from medusa_vllm import fingerprint, gate, source  # noqa: E402
from tree import Tree  # noqa: E402

PLUGIN = """
    import os
    from vllm import Params, envs
    from vllm.worker import base

    class Worker(base.Worker):
        def load(self):
            super().load()
            runner = self.runner
            os.getcwd()
            return runner.buffers.ids, envs.ROOT, Params(1), getattr(runner, "optional", None)
"""
PACKAGE = {
    "__init__.py": 'LAZY = {"Params": ".params:Params"}\n',
    "envs.py": "ROOT: str = '/'\nOTHER = 1\n",
    "params.py": "class Params:\n    n: int\n    def __init__(self, n):\n        self.n = n\n",
    "worker/__init__.py": "",
    "worker/base.py": """
        from ..runner import Runner
        from vllm.helpers import check

        class Root:
            def unload(self): ...

        class Worker(Root):
            def __init__(self):
                self.runner = Runner(1)
            def load(self):
                '''Loads.'''
                self.ready = check(self.runner)
            def sleep(self): ...
    """,
    "helpers.py": """
        def check(runner):
            # A comment.
            return deeper(runner)

        def deeper(runner):
            return True
    """,
    "runner.py": """
        class Buffers:
            def __init__(self, n):
                self.ids = [n]
                self.unread = n

        class Runner:
            optional: int = 0
            def __init__(self, n):
                self.buffers = Buffers(n)
                self.unread = 1
            def unused(self): ...
    """,
}
USED = {
    "params.py:Params", "params.py:Params.__init__", "envs.py:ROOT", "runner.py:Runner.buffers", "runner.py:Runner.optional", "runner.py:Buffers.ids",
    "worker/base.py:Worker", "worker/base.py:Worker.*", "worker/base.py:Worker.__init__", "worker/base.py:Worker.load", "worker/base.py:Worker.runner",
    "worker/base.py:Worker.sleep",
}  # fmt: skip
CALLED = {"helpers.py:check": "worker/base.py:Worker.load", "runner.py:Runner": "worker/base.py:Worker.__init__", "runner.py:Runner.__init__": "worker/base.py:Worker.__init__"}


class Folders(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.put(self.folder + "/plugin", {"worker.py": PLUGIN})

    def put(self, folder, files):
        for name, text in files.items():
            os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
            with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                f.write(textwrap.dedent(text))

    def package(self, name="first", **changes):
        """A package with some text of its files changed: file="old -> new"."""
        files = dict(PACKAGE)
        for file, change in changes.items():
            file = file.replace("__", "/") + ".py"
            old, new = change.split(" -> ", 1)
            self.assertIn(old, files[file])
            files[file] = files[file].replace(old, new)
        self.put(f"{self.folder}/{name}/vllm", files)
        return Tree(f"{self.folder}/{name}")

    def collected(self, tree):
        return symbols.collect(tree, plugin.uses(self.folder + "/plugin"))

    def held(self):
        with mock.patch.object(releases, "PLUGIN", self.folder + "/plugin"):
            held, unresolved = releases.made(self.package(), "2.0")
        self.assertEqual(unresolved, [])
        return held


class Symbols(Folders):
    def test_what_the_plugin_uses(self):
        found = self.collected(self.package())
        self.assertEqual(set(found.used), USED)

    def test_what_that_calls(self):
        """One step deep: deeper() is called by a callee."""
        found = self.collected(self.package())
        self.assertEqual(set(found.called), set(CALLED))
        self.assertEqual(found.callers, CALLED)

    def test_what_a_method_returns(self):
        """vLLM makes its model runner so since 0.32: the annotation names another class than the one that is returned."""
        made = "self.runner = Runner(1) -> self.runner = self.make()\n            def make(self) -> 'Absent':\n                return Runner(1)"
        found = self.collected(self.package(worker__base=made))
        self.assertEqual(set(found.used), USED | {"worker/base.py:Worker.make"})

    def test_names_that_lead_nowhere(self):
        self.put(self.folder + "/plugin", {"other.py": "from vllm.worker import absent\n"})
        self.assertEqual(self.collected(self.package()).unresolved, ["vllm.worker.absent"])


class Comparisons(Folders):
    def compare(self, **changes):
        with mock.patch.object(releases, "PLUGIN", self.folder + "/plugin"):
            return releases.compare(self.package("second", **changes), self.held())

    def test_the_same(self):
        r = self.compare()
        self.assertEqual((r.same, r.moved, r.missing), (len(USED) + len(CALLED), [], []))

    def test_a_comment(self):
        r = self.compare(helpers="A comment. -> Another.\n            # And one more.", worker__base="'''Loads.''' -> '''Loads more.'''")
        self.assertEqual((r.moved, r.missing), ([], []))

    def test_a_line_of_a_callee(self):
        r = self.compare(helpers="return deeper(runner) -> return not deeper(runner)")
        self.assertEqual(r.moved, [("helpers.py:check", "its source differs, called by worker/base.py:Worker.load")])
        self.assertEqual((r.same, r.missing), (len(USED) + len(CALLED) - 1, []))

    def test_a_line_of_a_callee_of_a_callee(self):
        self.assertEqual(self.compare(helpers="return True -> return False").moved, [])

    def test_a_symbol_that_moved(self):
        self.put(self.folder + "/second/vllm", {"other.py": PACKAGE["helpers.py"]})
        r = self.compare(helpers="def check(runner) -> def renamed(runner)", worker__base="vllm.helpers -> vllm.other")
        self.assertEqual(r.moved, [("helpers.py:check", "now in other.py, called by worker/base.py:Worker.load")])
        self.assertEqual(r.missing, [])

    def test_a_missing_symbol(self):
        r = self.compare(runner="optional: int = 0 -> pass", envs="ROOT: -> PLACE:")
        self.assertEqual(r.missing, [("envs.py:ROOT", "is missing"), ("runner.py:Runner.optional", "is missing")])
        self.assertEqual(r.moved, [("runner.py:Runner", "its source differs, called by worker/base.py:Worker.__init__")])

    def test_a_method_that_a_subclass_does_not_know(self):
        r = self.compare(worker__base="def sleep(self): ... -> def sleep(self): ...\n            def wake(self): ...")
        self.assertEqual(r.moved, [("worker/base.py:Worker.*", "its source differs")])

    def test_another_order(self):
        r = self.compare(envs="ROOT: str = '/'\nOTHER = 1 -> OTHER = 1\nROOT: str = '/'")
        self.assertEqual((r.moved, r.missing), ([], []))


class Starts(Folders):
    """The difference that a start finds, without the tool."""

    def difference(self, **changes):
        held = self.held()
        with open(self.folder + "/held.json", "w", encoding="utf-8") as f:
            json.dump(held, f)
        tree = self.package("second", **changes)
        with mock.patch.object(fingerprint, "path", lambda release: self.folder + "/held.json"):
            return fingerprint.difference.__wrapped__("1.0", tree.folder + "/vllm")

    def test_the_same(self):
        self.assertIsNone(self.difference())
        self.assertIsNone(self.difference(helpers="A comment. -> Another."))

    def test_used_definitions_go_first(self):
        self.assertEqual(self.difference(helpers="deeper(runner)\n\n -> None\n\n", runner="[n] -> [n, n]"), "runner.py:Buffers.ids")
        self.assertEqual(self.difference(helpers="return deeper -> return 1 + deeper"), "helpers.py:check")

    def test_a_file_that_is_gone_or_broken(self):
        self.assertEqual(self.difference(envs="ROOT: str = '/' -> ROOT = ("), "envs.py:ROOT")
        tree = self.package("third")
        os.unlink(tree.folder + "/vllm/envs.py")
        with mock.patch.object(fingerprint, "path", lambda release: self.folder + "/held.json"):
            self.assertEqual(fingerprint.difference.__wrapped__("1.0", tree.folder + "/vllm"), "envs.py:ROOT")


class Sources(unittest.TestCase):
    def digest(self, text, name):
        return source.digest(ast.parse(textwrap.dedent(text)), name)

    def test_documentation_alone_does_not_count(self):
        plain = "def f(x: int) -> int:\n    return x"
        self.assertEqual(self.digest(plain, "f"), self.digest('def f(x: int) -> int:\n    """Text."""\n    # Text.\n    return (x)', "f"))
        for other in "def f(x: int) -> int:\n    return -x", "def f(x: float) -> int:\n    return x", "def f(x: int = 0) -> int:\n    return x", "@cache\n" + plain:
            self.assertNotEqual(self.digest(plain, "f"), self.digest(other, "f"))

    def test_all_definitions_of_a_name(self):
        two = "if A:\n    def f(): return 1\nelse:\n    def f(): return {}"
        self.assertNotEqual(self.digest(two.format(2), "f"), self.digest(two.format(3), "f"))

    def test_what_is_not_there(self):
        for name in "g", "f.g", "C.g", "G.*":
            self.assertIsNone(self.digest("def f(): ...\nclass C:\n    def h(self): self.i = 1", name))
        self.assertIsNotNone(self.digest("class C:\n    def h(self): self.i = 1", "C.i"))

    def test_types_count(self):
        self.assertNotEqual(self.digest("A = 1", "A"), self.digest("A = '1'", "A"))


class Stored(unittest.TestCase):
    """The files of the repository."""

    def test_they_were_made_for_this_plugin(self):
        """If this fails: make vllm-fingerprint VERSION=x KEEP=1 for each supported release."""
        uses = plugin.uses(os.path.join(HERE, "..", "medusa_vllm")).digest()
        for release, torch in gate.SUPPORTED.items():
            with open(fingerprint.path(release), encoding="utf-8") as f:
                held = json.load(f)
            self.assertEqual((held["uses"], held["torch"]), (uses, torch), release)

    def test_the_page_is_made_of_the_results(self):
        results = os.path.join(HERE, "..", "..", "..", "docs", "results")
        with open(os.path.join(results, "vllm-fingerprint.json"), encoding="utf-8") as f:
            wanted = page.render(json.load(f))
        with open(os.path.join(results, "vllm-fingerprint.md"), encoding="utf-8") as f:
            self.assertEqual(f.read(), wanted)


ENVS = "environment_variables: dict = {'VLLM_HOST_IP': lambda: 1, 'VLLM_PLUGINS': lambda: 2}\nray_noset_env_vars = ['MAX_JOBS']\n"
CONFIG = """
    from vllm.config.utils import config

    @config
    class CacheConfig:
        known: ClassVar[int] = 1
        block_size: int = 16
        given: InitVar[int] = 1

    @config(config=ConfigDict(x=1))
    class SchedulerConfig:
        policy: str = "fcfs"

    class Helper:
        unread: int = 0
"""


class Names(Folders):
    """The names of variables and settings in a release, against the plug-in's tables."""

    def release(self, envs=ENVS, config=CONFIG):
        self.put(self.folder + "/release/vllm", {"__init__.py": "", "envs.py": envs, "config/__init__.py": "", "config/cache.py": config})
        return Tree(self.folder + "/release")

    def test_names(self):
        tree = self.release()
        self.assertEqual(names.variables(tree), ["VLLM_HOST_IP", "VLLM_PLUGINS", "MAX_JOBS"])
        self.assertEqual(names.settings(tree), ["CacheConfig.block_size", "SchedulerConfig.policy"])

    def test_a_release_with_known_names(self):
        self.assertEqual(names.wrong(self.release(), "9.9", ["0.26.0"]), [])

    def test_a_name_that_no_table_has(self):
        found = names.wrong(self.release(ENVS.replace("VLLM_HOST_IP", "VLLM_NEW"), CONFIG.replace("block_size", "new_size")), "9.9", ["0.26.0"])
        self.assertEqual(["no class: variable VLLM_NEW", "no class: setting CacheConfig.new_size"], [line.partition(" (")[0] for line in found])

    def test_a_supported_release_without_a_name(self):
        found = names.wrong(self.release(), "0.26.0", list(gate.SUPPORTED))
        self.assertIn("other releases: variable VLLM_PORT of variables.txt", found)
        self.assertNotIn("other releases: variable VLLM_HOST_IP of variables.txt", found)

    def test_a_release_that_keeps_its_names_elsewhere(self):
        for part in "envs", "config":
            with self.assertRaisesRegex(ValueError, "of vLLM"):
                names.wrong(self.release(**{part: ""}), "9.9", [])

    def test_the_page_is_made_of_the_tables(self):
        """If this fails: make vllm-identity."""
        with open(tables.PAGE, encoding="utf-8") as f:
            self.assertEqual(f.read(), tables.render())


class Command(Folders):
    release = Names.release

    def run_tool(self):
        command = [sys.executable, os.path.join(TOOL, "releases.py"), "--version", "9.9", "--source", self.folder + "/release"]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def test_last_line(self):
        """A package without vLLM's definitions."""
        self.release()
        done = self.run_tool()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout.splitlines()[-1], r"^fingerprint: same=0 moved=\d+ missing=[1-9]\d+$")

    def test_a_new_variable_is_refused(self):
        self.release(ENVS.replace("VLLM_HOST_IP", "VLLM_NEW"))
        done = self.run_tool()
        self.assertEqual(done.returncode, 1)
        self.assertIn("no class: variable VLLM_NEW (add it to variables.txt: counts, contents or deployment)", done.stderr)


if __name__ == "__main__":
    unittest.main()
