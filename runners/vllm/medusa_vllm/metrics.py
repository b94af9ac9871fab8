"""How the start went, on vLLM's own /metrics.

In: the status that the engine's process writes (MEDUSA_STATUS), beside it the size of an elastic KV cache, and prometheus_client as vLLM has set it up. Out:
medusa_starts_total by status and reason, medusa_start_milliseconds_total (Medusa's own time), medusa_graphs,
medusa_device_memory_free_bytes, and four gauges of an elastic KV cache. Fails: never; without a status there are no metrics.

The API server is another process than the engine. If it is one process, a collector in its registry reads the status at
each scrape. If vLLM has several (PROMETHEUS_MULTIPROC_DIR), their /metrics is made from files that processes leave, not from
such a registry: one process counts there, once.
"""

import atexit
import contextlib
import functools
import os
import sys
import tempfile

from . import contract
from .contract import ENV_ARTIFACT
from .files import read, write

STARTS = "medusa_starts", "Engine starts by how they went: restored, native with its reason, or sticky"
TIME = "medusa_start_milliseconds", "Time of engine starts that Medusa itself took"
GRAPHS = "medusa_graphs", "Restored graphs"
MEMORY = "medusa_device_memory_free_bytes", "Device memory that is free: at ready, and in the two starts that verified the artifact"

# Gauges of an elastic KV cache, by the field that the worker reports.
CACHE = {
    "range_bytes": ("medusa_kv_range_bytes", "Addresses of the KV cache"),
    "least_bytes": ("medusa_kv_least_bytes", "Memory that the KV cache has at the least"),
    "mapped_bytes": ("medusa_kv_mapped_bytes", "Memory that the KV cache has"),
    "blocks": ("medusa_kv_blocks", "Blocks of the KV cache that are handed out, the null block included"),
}
ENDING = ".kv"  # suffix of the file with the cache's size, beside the status


def place(reports=False):
    """The file of the status; one of this server's own if the user named none. reports: this start has something to report, whatever its run."""
    path = os.environ.get(contract.ENV_STATUS)
    if not path and (reports or os.environ.get(contract.ENV_RUN) == contract.RUN_RESTORE):
        folder = tempfile.TemporaryDirectory(prefix="medusa-")
        atexit.register(folder.cleanup)
        path = os.environ[contract.ENV_STATUS] = os.path.join(folder.name, "status.json")
    return path


def labels(status):
    return [status["status"], status.get("reason", "")]


def free(status):
    """Free device memory by when it was measured."""
    said = {"ready": "free", "verified_native": "verified_native_free", "verified_restored": "verified_restored_free"}
    memory = status.get("memory", {})
    return [(when, memory[field]) for when, field in said.items() if field in memory]


class Collector:
    def collect(self):
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        # A start that its environment switches on gets the file after this was registered.
        self.path = os.environ.get(contract.ENV_STATUS)
        status = read(self.path) if self.path else None
        if status is None:
            return
        starts = CounterMetricFamily(*STARTS, labels=["status", "reason"])
        starts.add_metric(labels(status), 1)
        yield starts
        yield CounterMetricFamily(*TIME, value=status["milliseconds"])
        yield GaugeMetricFamily(*GRAPHS, value=status["graphs"])
        memory = GaugeMetricFamily(*MEMORY, labels=["when"])
        for when, value in free(status):
            memory.add_metric([when], value)
        yield memory
        size = read(self.path + ENDING) or {}
        for field, told in CACHE.items():
            if field in size:
                yield GaugeMetricFamily(*told, value=size[field])


def count():
    """Writes the status of this start to the metric files of several processes. Only the first process does so."""
    path = os.environ.get(contract.ENV_STATUS)
    status = read(path) if path and os.environ.get("PROMETHEUS_MULTIPROC_DIR") else None
    if status is None:
        return
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path + ".counted", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        from prometheus_client import Counter, Gauge

        Counter(*STARTS, ["status", "reason"]).labels(*labels(status)).inc()
        Counter(*TIME).inc(status["milliseconds"])
        Gauge(*GRAPHS, multiprocess_mode="mostrecent").set(status["graphs"])
        memory = Gauge(*MEMORY, ["when"], multiprocess_mode="mostrecent")
        for when, value in free(status):
            memory.labels(when).set(value)


def resized(size):
    """Hands the size of an elastic KV cache to the API server."""
    path = os.environ.get(contract.ENV_STATUS)
    try:
        if path and os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
            for field, told in CACHE.items():
                gauge(*told).set(size[field])
        elif path:
            write(path + ENDING, size)
    except OSError as e:
        print(f"medusa: no metrics of the KV cache: {e}", file=sys.stderr, flush=True)


@functools.cache
def gauge(name, text):
    from prometheus_client import Gauge

    return Gauge(name, text, multiprocess_mode="mostrecent")


def register():
    """vLLM's entry point, called in each of its processes."""
    try:
        path = place() or os.environ.get(ENV_ARTIFACT)
        if path and os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
            count()
        elif path:
            from prometheus_client import REGISTRY

            REGISTRY.register(Collector())
    except Exception as e:
        print(f"medusa: no metrics: {e}", file=sys.stderr, flush=True)
