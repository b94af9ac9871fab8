"""Which files the outcome of a case depends on. It needs no vLLM."""

import os
import subprocess
import tempfile
import unittest

import sources

PACKAGES = {"restore": True, "restore/check": True, "serving/gateway": False, "cmd/medusa": True}


class TestCounts(unittest.TestCase):
    def test_counts(self):
        for name, wanted in {
            "restore/session.go": True,
            "restore/session_test.go": False,
            "restore/testdata/x": True,
            "serving/gateway/serve.go": False,
            "serving/gateway/page/index.html": False,
            "cmd/medusa/restore.go": True,
            "interpose/preload/entry.c": True,
            "interpose/test/x.c": False,
            "unknown/x.c": True,
            "go.mod": True,
            "docs/results/x.json": False,
            "README.md": False,
            "test/calllog/proxy/log.c": True,
            "test/faults/main.go": False,
            "runners/torch/python/medusa_graphs/session.py": True,
            "runners/torch/engine.py": False,
            "runners/torch/test/compare.py": True,
            "runners/torch/test/run.py": False,
            "runners/vllm/medusa_vllm/gate.py": True,
            "runners/vllm/medusa_vllm/fingerprint-0.33.0.json": True,
            "runners/vllm/medusa_vllm/fingerprint-0.26.0.json": False,
            "runners/vllm/requirements.txt": True,
            "runners/vllm/requirements-0.33.0.txt": True,
            "runners/vllm/requirements-0.28.0.txt": False,
            "runners/vllm/test/engine.py": True,
            "runners/vllm/test/served/schedules.py": True,
            "runners/vllm/test/changes.txt": True,
            "runners/vllm/test/faults.py": False,
            "runners/vllm/test/models/llama/config.json": True,
            "runners/vllm/test/models/llama2/config.json": False,
        }.items():
            self.assertEqual(sources.counts(name, "0.33.0", ("llama", "qwen3"), PACKAGES), wanted, name)


class TestKey(unittest.TestCase):
    """A repository of two packages, of which one is run."""

    FILES = {
        "go.mod": "module x\n\ngo 1.23\n",
        "materialize/m.go": 'package materialize\n\nimport _ "x/used"\n',
        "restore/supervisor/s.go": "package supervisor\n",
        "cmd/libmedusa/l.go": "package main\n\nfunc main() {}\n",
        "cmd/medusa/m.go": 'package main\n\nimport _ "x/other"\n\nfunc main() {}\n',
        "used/u.go": "package used\n",
        "other/o.go": "package other\n",
    }

    def key(self, **changed):
        with tempfile.TemporaryDirectory() as root:
            for name, text in (self.FILES | changed).items():
                path = os.path.join(root, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8") as f:
                    f.write(text)
            subprocess.run(["git", "init", "-q"], cwd=root, check=True)
            return sources.key(root, "0.33.0", "llama")

    def test_key(self):
        key = self.key()
        self.assertEqual(self.key(), key)
        self.assertEqual(self.key(**{"other/o.go": "package other\n\n"}), key)
        for name in "used/u.go", "cmd/medusa/m.go", "go.mod":
            self.assertNotEqual(self.key(**{name: self.FILES[name] + "\n"}), key, name)
        self.assertNotEqual(self.key(**{"new.c": ""}), key)


if __name__ == "__main__":
    unittest.main()
