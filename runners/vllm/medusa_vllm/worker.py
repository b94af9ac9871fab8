"""vLLM's GPU worker with Medusa's session around its start.

In: Medusa's environment (docs/architecture.md), vLLM's calls of a worker. Out: recording runs mark phases, tensors and
graphs, and end where graphs are captured; a restored start takes the KV cache's size from the artifact and its graphs in
place of captures. Fails: as the session; whatever does not fit starts as vLLM does, with one line that says why.
"""

import json
import os
import sys

import torch
import vllm
from vllm.utils.torch_utils import current_stream
from vllm.v1.worker import gpu_worker

import medusa
from medusa import marks

from . import gate, identity, inputs
from .graphs import GraphManager
from .platform import native

EXIT_INCOMPATIBLE = 3


class Worker(gpu_worker.Worker):
    session = None

    def init_device(self):
        if os.environ.get("MEDUSA_RUN"):
            reason = gate.version_reason(vllm.__version__, torch.__version__) or gate.config_reason(self.vllm_config)
            if reason:
                self.stay_out(reason)
            else:
                self.session, self.names = medusa.Session(), set()
        if self.session:
            torch.cuda.set_device(self.local_rank)
            self.session.identify(identity.factors(self.vllm_config, vllm.__version__, torch.__version__, torch.version.cuda))
            self.session.phase("structure")
        super().init_device()

    def stay_out(self, reason):
        """A recording that could not be restored is no recording; a restore goes on as vLLM's own start."""
        native(reason)
        if os.environ["MEDUSA_RUN"] != "restore" or os.environ.get("MEDUSA_STRICT") == "1":
            sys.stderr.flush()
            os._exit(EXIT_INCOMPATIBLE)

    def load_model(self, *, load_dummy_weights=False):
        if not self.session:
            return super().load_model(load_dummy_weights=load_dummy_weights)
        self.session.phase("weights")
        super().load_model(load_dummy_weights=load_dummy_weights)
        self.name(inputs.weights(self.model_runner.model))

    def name(self, found):
        for name, t, role, bounds in inputs.once(found, self.names):
            self.session.tensor(name, t, role, **bounds)

    def determine_available_memory(self):
        if not self.session:
            return super().determine_available_memory()
        given = self.session.kv_bytes()
        if given is not None:
            # The profile forward would have made the stream that the process computes on.
            current_stream()
            return given
        size = super().determine_available_memory()
        free, total = torch.cuda.mem_get_info()
        medusa.kv_profile(
            size,
            total,
            self.init_snapshot.free_memory,
            free,
            int(getattr(self, "peak_activation_memory", 0)),  # absent where the user set the size
            self.cache_config.gpu_memory_utilization,
            self.scheduler_config.max_num_batched_tokens,
        )
        return size

    def initialize_from_config(self, kv_cache_config):
        if not self.session:
            return super().initialize_from_config(kv_cache_config)
        self.session.phase("kv_cache")
        super().initialize_from_config(kv_cache_config)
        runner = self.model_runner
        reason = gate.backend_reason(g.backend.get_name() for groups in runner.attn_groups for g in groups)
        if reason:
            self.stay_out(reason)
            self.session = None
            return
        self.name(inputs.cached(runner))
        runner.cudagraph_manager = GraphManager(self.session, runner, runner.cudagraph_manager, self.captured)

    def compile_or_warm_up_model(self):
        if not self.session:
            return super().compile_or_warm_up_model()
        self.run_triggers()
        times = super().compile_or_warm_up_model()
        self.write_places()
        self.session.ready()
        return times

    def run_triggers(self):
        """Small forwards that load the modules of the graphs' kernels, by the path that a decode step takes."""
        for batch in self.session.triggers():
            self.session.trigger(lambda b=batch: self.model_runner._dummy_run(b, uniform_decode=True))

    def captured(self):
        """Recording and verifying runs end here: what they are for is done, and warm-up would write what they compare."""
        if self.session.run == medusa.RESTORE and not os.environ.get("MEDUSA_CHECK_OUT"):
            return
        inputs.prepare(self.model_runner)
        self.write_places()
        self.session.ready()

    def write_places(self):
        """For tests: where named tensors lie."""
        path = os.environ.get("MEDUSA_VLLM_PLACES")
        if path:
            with open(path, "w", encoding="utf-8") as f:
                json.dump(self.session.named, f)

    def sleep(self, level=1):
        self.drop("sleep mode")
        super().sleep(level)

    def reload_weights(self, *args, **kwargs):
        self.drop("weights are reloaded")
        super().reload_weights(*args, **kwargs)

    def drop(self, reason):
        manager = self.session and self.model_runner.cudagraph_manager
        if manager and manager.restored:
            print(f"medusa: restored graphs are no longer used: {reason}", file=sys.stderr, flush=True)
            manager.invalidate()
