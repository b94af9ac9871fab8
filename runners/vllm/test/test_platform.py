"""Tests of the choice of the worker, and of metrics. They need neither vLLM nor torch."""

import json
import os
import sys
import tempfile
import types
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from medusa_vllm import metrics, platform  # noqa: E402


class Point:
    def __init__(self, name, answer):
        self.name, self.answer = name, answer

    def load(self):
        return lambda: self.answer


class Platform(unittest.TestCase):
    def choose(self, chosen, run="restore"):
        """The worker class, and why Medusa stays out."""
        p, said = types.SimpleNamespace(worker_cls=chosen), []
        with mock.patch.dict(os.environ, {"MEDUSA_RUN": run}):
            platform.choose_worker(p, said.append)
        return p.worker_cls, " ".join(said)

    def test_auto_takes_the_worker(self):
        self.assertEqual(self.choose("auto"), (platform.WORKER, ""))

    def test_the_users_worker_stays(self):
        worker, said = self.choose("their.Worker")
        self.assertEqual(worker, "their.Worker")
        self.assertIn("their.Worker", said)

    def test_nothing_is_said_where_nothing_was_asked(self):
        self.assertEqual(self.choose("their.Worker", run=""), ("their.Worker", ""))

    def test_rival(self):
        own = Point(platform.NAME, "medusa")
        self.assertIsNone(platform.rival([own, Point("idle", None)]))
        self.assertIn("theirs", platform.rival([own, Point("theirs", "x.Y")]))

    def test_absent_without_medusa(self):
        with mock.patch.dict(os.environ, {"MEDUSA_RUN": "", "MEDUSA_STATUS": ""}):
            self.assertIsNone(platform.activate())

    def test_reason_of_an_attached_start(self):
        """The process that prepared the start has no interposer, so its session would give that as the reason."""
        for attached in (False, True):
            said = mock.Mock()
            said.attach.attached.return_value, said.attach.wanted.return_value = attached, False
            with mock.patch.dict(sys.modules, {"medusa_graphs": said}), mock.patch.dict(os.environ, {"MEDUSA_STATUS": ""}):
                platform.native("rival")
                self.assertEqual(bool(os.environ["MEDUSA_STATUS"]), attached)  # for the metrics
            self.assertEqual(said.attach.native.mock_calls, [mock.call("unsupported", "rival")] if attached else [])
            said.Session.return_value.refuse.assert_called_once_with("rival")


class Family:
    """As prometheus_client's metrics and families: every value that anything was set to."""

    values = []

    def __init__(self, name, text, names=(), labels=(), value=None, multiprocess_mode=""):
        self.name, self.now = name, ()
        if value is not None:
            self.values.append((name, (), value))

    def labels(self, *values):
        self.now = values
        return self

    def add_metric(self, labels, value):
        self.values.append((self.name, tuple(labels), value))

    def inc(self, value=1):
        self.values.append((self.name, self.now, value))

    set = inc


class Metrics(unittest.TestCase):
    native = {"status": "native", "reason": "memory", "milliseconds": 1.5, "graphs": 0, "memory": {"free": 10, "total": 20, "verified_native_free": 8}}
    values = [("medusa_starts", ("native", "memory"), 1), ("medusa_start_milliseconds", (), 1.5), ("medusa_graphs", (), 0),
              ("medusa_device_memory_free_bytes", ("ready",), 10), ("medusa_device_memory_free_bytes", ("verified_native",), 8)]

    def setUp(self):
        Family.values = []
        client = types.ModuleType("prometheus_client")
        client.Counter = client.Gauge = Family
        client.core = types.ModuleType("prometheus_client.core")
        client.core.CounterMetricFamily = client.core.GaugeMetricFamily = Family
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "status.json")
        several = {"MEDUSA_STATUS": self.path, "PROMETHEUS_MULTIPROC_DIR": folder.name}
        for patch in (mock.patch.dict(sys.modules, {"prometheus_client": client, client.core.__name__: client.core}), mock.patch.dict(os.environ, several)):
            patch.start()
            self.addCleanup(patch.stop)

    def write(self):
        with open(self.path, "w", encoding="utf-8") as f:
            json.dump(self.native, f)

    def test_scrape(self):
        collector = metrics.Collector()
        self.assertEqual(list(collector.collect()), [])
        self.write()
        list(collector.collect())
        self.assertEqual(Family.values, self.values)

    def test_several_processes_count_once(self):
        metrics.count()
        self.assertEqual(Family.values, [])
        self.write()
        metrics.count()
        metrics.count()
        self.assertEqual(Family.values, self.values)

    def test_size_of_an_elastic_cache(self):
        size = {"range_bytes": 4, "least_bytes": 1, "mapped_bytes": 2, "blocks": 3}
        told = [(f"medusa_kv_{name}", (), value) for name, value in size.items()]
        metrics.gauge.cache_clear()
        metrics.resized({**size, "page_bytes": 1})
        self.assertEqual(Family.values, told)
        with mock.patch.dict(os.environ):
            del os.environ["PROMETHEUS_MULTIPROC_DIR"]
            metrics.resized({**size, "page_bytes": 1})
        self.write()
        Family.values = []
        list(metrics.Collector().collect())
        self.assertEqual(Family.values, self.values + told)

    def test_a_restored_start_has_a_status(self):
        for run, wanted in (("restore", True), ("record", False)):
            with mock.patch.dict(os.environ, {"MEDUSA_RUN": run, "MEDUSA_STATUS": ""}):
                self.assertEqual(bool(metrics.place()), wanted)


if __name__ == "__main__":
    unittest.main()
