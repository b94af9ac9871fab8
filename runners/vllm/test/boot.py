"""make bench-boot: how long `vllm serve` takes until it is healthy, in turns: natively, restored, restored with a pool of the start's own (`--pool FILE`),
and restored in processes of a pool that runs already.

In: the output of `make vllm`. Out: a line about each round, a table of wall and processor seconds, and a last line: PASS if the aims are met, else
short. Fails: exit code 1 if a start is not as it should be. On the simulated GPU, kernels take no time: what is measured is everything else.
"""

import getpass
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from run import arguments, stop
from serve import GRAPHS, Server

ROUNDS = 5
AIMS = {"beside": 0.6, "pool": 0.25}  # of native
READY_SECONDS = 600
QUIET = 60  # seconds after a start without imports: longer than a start takes

# What each of the two processes imports until the server is healthy, as far as imports begin no work.
BOTH = ["vllm.entrypoints.cli.main", "vllm.plugins.lora_resolvers.filesystem_resolver", "vllm.plugins.lora_resolvers.hf_hub_resolver", "torch._inductor.compile_fx"]
API_SERVER = [
    *BOTH, "vllm.entrypoints.cli.serve", "vllm.entrypoints.cli.benchmark.main", "vllm.entrypoints.cli.launch", "vllm.entrypoints.cli.openai",
    "vllm.entrypoints.cli.run_batch", "vllm.entrypoints.openai.api_server", "vllm.entrypoints.openai.run_batch", "vllm.v1.engine.async_llm",
    "vllm.entrypoints.openai.chat_completion.api_router", "vllm.entrypoints.openai.completion.api_router", "vllm.entrypoints.openai.responses.api_router",
    "vllm.entrypoints.anthropic.api_router", "vllm.entrypoints.generate.generative_scoring.api_router", "vllm.entrypoints.scale_out.render.api_router",
    "vllm.entrypoints.scale_out.derender.api_router", "vllm.entrypoints.scale_out.token_in_token_out.api_router", "vllm.entrypoints.serve.tokenize.api_router",
    "vllm.entrypoints.serve.instrumentator.metrics", "transformers.models.llama.configuration_llama", "vllm.v1.attention.backends.mla.indexer", "vllm.renderers.hf",
    "uvicorn.protocols.http.auto", "uvicorn.protocols.websockets.auto", "uvicorn.lifespan.on",
]  # fmt: skip
ENGINE_CORE = [
    *BOTH, "vllm.v1.engine.core", "vllm.v1.executor.uniproc_executor", "vllm.v1.core.sched.async_scheduler", "vllm.model_executor.models.llama",
    "vllm.v1.attention.backends.flash_attn", "vllm.v1.worker.gpu.model_states.default", "vllm.model_executor.warmup.minimax_m3_msa_warmup",
    "vllm.model_executor.kernels.linear.cute_dsl.ll_bf16", "vllm.distributed.elastic_ep.elastic_execute", "triton.experimental.gluon",
    "setproctitle", "medusa_vllm.worker",
]  # fmt: skip

# What vLLM sets in its own environment before it spawns the engine core.
SET_BY_VLLM = {
    "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
    "TORCHINDUCTOR_CACHE_DIR": os.path.join(tempfile.gettempdir(), "torchinductor_" + getpass.getuser()),
    "TRITON_CACHE_AUTOTUNING": "1",
    "TILELANG_CLEANUP_TEMP_FILES": "1",
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
}


def processors(root):
    """Processor seconds of all processes below one, with those that have ended and were waited for. Processes that wait in a pool count before and after,
    so a difference has the start alone."""
    parent, seconds = {}, {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
                fields = f.read().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        parent[int(pid)], seconds[int(pid)] = int(fields[1]), sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    below = {root}
    while more := {pid for pid, of in parent.items() if of in below} - below:
        below |= more
    return sum(seconds[pid] for pid in below)


class Boot(Server):
    def __init__(self, args):
        super().__init__(args)
        self.socket, self.config = self.path("pool/socket"), self.path("pool.yaml")

    def variables(self):
        """The same for all starts: imports look through the whole environment."""
        env = self.environment("restored")
        del env["SIMGPU_CALL_LOG"]
        return env | {"CUDART_STACK": "clean"}

    def timed(self, way, round, command):
        """Wall and processor seconds from the start of the command to the first answer of /health."""
        output = self.path(f"{way}-{round}.output")
        with open(output, "w", encoding="utf-8") as out:
            before, began = processors(os.getpid()), time.monotonic()
            server = subprocess.Popen(command, env=self.variables(), stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        try:
            self.wait(way, server)
            return time.monotonic() - began, processors(os.getpid()) - before
        finally:
            server.terminate()
            server.wait(60)

    def restored(self, way, round, artifact, *options):
        status = self.path(f"{way}-{round}.json")
        took = self.timed(way, round, [self.medusa, "restore", *options, "--status", status, artifact, "--", *self.command])
        told = self.status(status)
        if (told["status"], told.get("graphs")) != ("restored", GRAPHS) or told.get("pool", "") != ("yes" if options else ""):
            stop(way, told)
        with open(self.path(f"{way}-{round}.output"), encoding="utf-8") as out:
            cold = [line for line in out if "medusa: " in line]
        if cold:
            stop(way, *cold)
        return took

    def engines(self):
        shared = {"command": self.command, "environment": self.variables(), "size": 1}
        return [
            shared | {"name": "api-server", "modules": API_SERVER},
            shared | {"name": "engine-core", "modules": ENGINE_CORE, "spawned": True, "environment": self.variables() | SET_BY_VLLM},
        ]

    def pool(self):
        with open(self.config, "w", encoding="utf-8") as f:  # JSON is YAML
            json.dump({"socket": self.socket, "quiet": QUIET, "engines": [e | {"folder": os.getcwd()} for e in self.engines()]}, f)
        return subprocess.Popen([self.medusa, "pool", self.config], env=self.variables(), stdin=subprocess.DEVNULL)

    def state(self):
        done = subprocess.run([self.medusa, "pool", "status", "--json", self.socket], capture_output=True, text=True, check=False)
        return json.loads(done.stdout)["engines"] if done.returncode == 0 else []

    def ready(self):
        end = time.monotonic() + READY_SECONDS
        while time.monotonic() < end:
            engines = self.state()
            if engines and all(e["ready"] == e["size"] for e in engines):
                return engines
            time.sleep(0.5)
        stop("the pool has no processes after", READY_SECONDS, "seconds", self.state())


def ratios(took, way, what):
    """Each round's share of the native start."""
    return [start[what] / native[what] for start, native in zip(took[way], took["native"])]


def table(took):
    print("| start | wall | lowest | highest | of native | processors | of native |\n|---|---|---|---|---|---|---|")
    for way, starts in took.items():
        wall, work = zip(*starts)
        of = [f"{statistics.median(r):.2f} ({min(r):.2f} to {max(r):.2f})" for r in (ratios(took, way, 0), ratios(took, way, 1))]
        print(f"| {way} | {statistics.median(wall):.1f} s | {min(wall):.1f} s | {max(wall):.1f} s | {of[0]} | {statistics.median(work):.1f} s | {of[1]} |")


def main():
    rounds = int(os.environ.get("ROUNDS") or ROUNDS)
    server = Boot(arguments())
    artifact = server.materialize()
    took = {"native": [], "restored": [], "beside": [], "pool": []}
    pool = server.pool()
    try:
        for round in range(rounds):
            # The pool has nothing to do while the others are measured.
            engines = server.ready()
            took["native"].append(server.timed("native", round, server.command))
            took["restored"].append(server.restored("restored", round, artifact))
            took["beside"].append(server.restored("beside", round, artifact, "--pool", server.config))
            took["pool"].append(server.restored("pool", round, artifact, "--pool", server.socket))
            print(f"round {round}:", ", ".join(f"{way} {starts[-1][0]:.1f} s ({starts[-1][1]:.1f} s)" for way, starts in took.items()), flush=True)
    finally:
        pool.terminate()
        pool.wait(60)
    table(took)
    for e in engines:
        print(f"{e['name']}: imported in {e['counts']['import_seconds']:.1f} s, {e['pss'] / 2**20:.0f} MiB")
    reached = {way: statistics.median(ratios(took, way, 0)) for way in AIMS}
    met = all(reached[way] <= aim for way, aim in AIMS.items())
    print(f"bench-boot: {'PASS' if met else 'short'} device=simulated rounds={rounds}", *(f"{way}={reached[way]:.2f}/{aim}" for way, aim in AIMS.items()))


if __name__ == "__main__":
    sys.exit(main())
