"""vLLM's GPU worker with Medusa's session around its start.

In: Medusa's environment (docs/architecture.md), vLLM's calls of a worker. Out: recording runs mark phases, tensors and
graphs, and end when graphs are captured; a restored start takes the KV cache's size from the artifact and its graphs in
place of captures; every start reports its stages. Fails: as the session; a start that is not supported goes on as vLLM's own,
with one line that gives the reason.
"""

import contextlib
import json
import os
import sys

import torch
import vllm
from vllm import envs
from vllm.compilation.breakable_cudagraph import is_breakable_cudagraph_enabled
from vllm.compilation.cuda_graph import CUDAGraphWrapper
from vllm.config import CompilationMode, CUDAGraphMode
from vllm.forward_context import BatchDescriptor
from vllm.utils.torch_utils import current_stream
from vllm.v1.worker import gpu_worker
from vllm.v1.worker.gpu.cudagraph_utils import BatchExecutionDescriptor
from vllm.v1.worker.utils import request_memory
from vllm.v1.worker.workspace import current_workspace_manager

import medusa_graphs as medusa

from . import blocks, communicators, compiled, contract, control, drafts, elastic, engines, gate, identity, inputs, metrics, named, platform, queries, share, steps, values
from .breakable import wrapper_in
from .graphs import GraphManager
from .sleep import Sleeper
from .watched import Watched
from .wrapper import ModelWrapper

COMPILE_TOKENS = 16  # more than one, for which a compiler may make special code


def streams(model):
    """The streams that the model's modules compute on besides the current one, such as that of shared experts."""
    return dict.fromkeys(v for module in model.modules() for _, v in inputs.held(module) if isinstance(v, torch.cuda.Stream))


def resources():
    """The keys of the memory that vLLM keeps for kernels (since 0.31), in each of its lanes."""
    return [(i, key) for i, held in enumerate(getattr(current_workspace_manager(), "_persistent_resources", ())) for key in held]


class Worker(control.Resized, Sleeper):
    profiled = True
    given = None  # size of the KV cache, if no profile forward has to find it
    elastic, most = False, None  # whether the KV cache is to be elastic, and its bytes at most
    resources = ()  # keys of the memory that vLLM kept for kernels before its captures
    graphs = None  # the holder of graphs in place of vLLM's own
    code = None  # of a model that is compiled
    session = None

    def init_device(self):
        ranks = self.parallel_config.world_size
        if ranks > 1:
            os.environ.update({contract.ENV_RANK: str(self.rank), contract.ENV_WORLD_SIZE: str(ranks)})
        engines.enter(self.parallel_config)
        try:
            self.open()
        except medusa.MedusaError as e:
            print(f"medusa: native start: {e}", file=sys.stderr, flush=True)
        if self.takes_part():
            self.given = self.session.kv_bytes()
        needed = self.session.kv_room() if self.elastic and self.takes_part() else None
        with gate.asking(self.cache_config, self.given if needed is None else needed, lambda: torch.cuda.mem_get_info()[1]):
            super().init_device()
        if ranks > 1 and self.takes_part():
            self.own("mark communicators", self.mark_communicators)

    def mark_communicators(self):
        reason = communicators.reason()
        if reason:
            self.session.refuse(reason)
        else:
            communicators.mark(self.session)

    def open(self):
        self.session, self.names = medusa.Session(), set()
        self.session.phase("device")
        reason = platform.version_reason(vllm.__version__, torch.__version__) or gate.config_reason(self.vllm_config)
        reason = reason or gate.ranks_reason(self.vllm_config, vllm.__version__)
        reason = reason or gate.descriptor_reason(BatchExecutionDescriptor, BatchDescriptor)
        try:
            self.elastic, self.most = share.asked(os.environ.get(contract.ENV_VLLM_KV, ""))
        except ValueError as e:
            reason = reason or str(e)
        if self.elastic:
            reason = reason or gate.elastic_reason(self.vllm_config, vllm.__version__)
        if reason:
            self.session.refuse(reason)
        else:
            torch.cuda.set_device(engines.device(self.local_rank, self.parallel_config))
            self.own("identify engine", self.identify)

    def identify(self):
        versions = vllm.__version__, torch.__version__, torch.version.cuda
        factors = identity.factors(self.vllm_config, *versions, envs.environment_variables)
        self.settings = identity.chosen(factors)
        if self.elastic:
            factors[named.ENV + contract.ENV_VLLM_KV] = "elastic"
            self.session.elastic(0, 0)
        self.session.identify(factors | values.factors(self.session.weights, self.vllm_config))

    def takes_part(self):
        """Whether this start is recorded, or is still to be restored."""
        return self.session and self.session.run != medusa.NONE and (self.session.run != medusa.RESTORE or self.session.restoring)

    def own(self, what, step):
        """Runs a step of Medusa's own. An error refuses the session, and does not end vLLM's start."""
        try:
            step()
        except Exception as e:
            self.session.refuse(f"{what}: {e}")

    def phase(self, name):
        if self.session:
            self.session.phase(name)

    def load_model(self, *, load_dummy_weights=False):
        self.phase("weights")
        with values.loaded(self.session.weights if self.session else medusa.WEIGHTS_ANY):
            super().load_model(load_dummy_weights=load_dummy_weights)
        if self.takes_part():
            self.own("name weights", lambda: self.name(inputs.weights(self.model_runner)))

    def name(self, found):
        """Names tensors. Returns those that got a name, with name and role."""
        named = []
        for name, t, role, bounds in inputs.once(found, self.names):
            self.session.tensor(name, t, role, **bounds)
            named.append((name, t, role))
        return named

    def determine_available_memory(self):
        if self.given is not None and not self.takes_part():
            # This start can no longer be restored: it profiles, and vLLM's own check of free memory applies.
            self.given, self.requested_memory = None, request_memory(self.init_snapshot, self.cache_config)
        if self.given is not None:
            self.profiled = False
            # The profile forward would have made the stream that the process computes on.
            current_stream()
            medusa.workspaces(self.session, streams(self.model_runner.model))
            self.reserve(self.session.workspace_bytes())
            return self.given
        self.phase("profile")
        size = super().determine_available_memory()
        if self.takes_part():
            free, total = torch.cuda.mem_get_info()
            if reason := gate.size_reason(size, total):
                self.session.refuse(reason)
                return size
            medusa.kv_profile(
                size,
                total,
                self.init_snapshot.free_memory,
                free,
                int(getattr(self, "peak_activation_memory", 0)),  # absent if the user set the size
                self.cache_config.gpu_memory_utilization,
                self.scheduler_config.max_num_batched_tokens,
                sum(t.numel() for t in inputs.workspaces()),
            )
        return size

    def reserve(self, size):
        """Graphs keep the address of the workspace that forwards compute in. The workspace moves when a forward needs a larger one. No
        forward needs more than the profile forward."""
        if size:
            current_workspace_manager().get_simultaneous(((size,), torch.uint8))

    def initialize_from_config(self, kv_cache_config):
        self.phase("kv_cache")
        if self.elastic and self.takes_part():
            with elastic.allocating(self.model_runner, self.make_cache):
                super().initialize_from_config(kv_cache_config)
        else:
            super().initialize_from_config(kv_cache_config)
        if not self.takes_part():
            return
        runner = self.model_runner
        groups = [group for found in inputs.attention(runner).values() for group in found]
        reason = gate.backend_reason(group.backend.get_name() for group in groups) or gate.delta_reason(b for group in groups for b in group.metadata_builders)
        reason = reason or gate.mode_reason(self.vllm_config) or gate.graphs_reason(runner) or drafts.reason(runner) or gate.runner_reason(self.vllm_config, self.use_v2_model_runner, vllm.__version__)
        if reason:
            self.session.refuse(reason)
        else:
            self.own("name tensors", self.take_graphs)

    def make_cache(self, config):
        self.cache = elastic.Cache(config, self.model_config.max_model_len, self.local_rank)
        self.session.elastic(self.cache.least, sum(self.cache.sizes))
        return self.cache.tensors

    def stretch(self):
        """Maps the memory of an elastic KV cache, once the graphs are there and their verification is over."""
        room = self.session.kv_room()
        try:
            self.cache.grow(min((bytes for bytes in (self.most, room) if bytes is not None), default=sys.maxsize))
        except MemoryError as e:
            print(f"medusa: KV cache has {self.cache.blocks} of {self.cache.most} blocks: {e}", file=sys.stderr, flush=True)
        self.cache_config.num_gpu_blocks = self.cache.blocks
        blocks.limit(self.cache.blocks, self.serves)

    def take_graphs(self):
        runner = self.model_runner
        named = self.name(inputs.cached(runner, self.cache and self.cache.blocks))
        self.fixed = [(name, t) for name, t, role in named if role == medusa.WEIGHT]
        breakable = is_breakable_cudagraph_enabled()
        if breakable and drafts.speculator(runner):
            self.session.refuse("breakable graphs of a draft model")
        elif self.use_v2_model_runner:
            self.graphs = runner.cudagraph_manager = GraphManager(
                self.session, runner, runner.cudagraph_manager, self.captured, lambda: self.own("find inputs", self.look)
            )
        elif wrapper_in(runner.model) or (not breakable and (type(runner.model) is CUDAGraphWrapper or isinstance(runner.model, torch.nn.Module))):
            self.graphs = ModelWrapper(self.session, runner, self.captured)
        else:
            self.session.refuse(f"graphs of a {type(runner.model).__name__}")

    def compile_or_warm_up_model(self):
        with self.unobserved():
            return self.start_up()

    def unobserved(self):
        """Forwards of a start must not count as load of experts. Since 0.33, vLLM does not count those of its own warm-up."""
        eplb = getattr(self.model_runner, "eplb", None)
        return eplb.suppress() if hasattr(eplb, "suppress") else contextlib.nullcontext()

    def start_up(self):
        self.compile()
        if self.takes_part():
            self.own("name tables", lambda: self.name(inputs.made(self.model_runner)))
        self.phase("kernels")
        self.run_triggers()
        self.mark_capture()
        times = super().compile_or_warm_up_model()
        self.write_places()
        if self.session:
            self.session.ready()
            if self.cache:
                self.stretch()
            metrics.count()
        return times

    def compile(self):
        """The profile forward would have compiled the model, and made the tables of addresses that LoRA's kernels read."""
        compiles = self.compilation_config.mode == CompilationMode.VLLM_COMPILE
        if not self.profiled and (compiles or self.vllm_config.lora_config):
            self.phase("compile")
            if compiles:
                self.cached(self.find_code)
            self.dummy_run(min(COMPILE_TOKENS, self.scheduler_config.max_num_batched_tokens))

    def find_code(self):
        self.code = compiled.Code(self.vllm_config, self.model_runner.model, self.settings)
        self.code.find()

    def cached(self, step):
        """An error is only reported: vLLM compiles code that it does not find."""
        try:
            step()
        except Exception as e:
            print(f"medusa: compiled code: {type(e).__name__}: {e}", file=sys.stderr, flush=True)

    def run_triggers(self):
        """Small forwards that load the modules of the graphs' kernels, at the sizes of graphs. A native start that checks makes them
        after its captures."""
        for batch in self.session.triggers() if self.takes_part() else ():
            self.session.trigger(lambda b=batch: self.step(b))

    def step(self, tokens):
        """Runs a forward of so many tokens, as a decode step if a batch of decodes may have so many."""
        self.dummy_run(tokens, uniform_decode=tokens <= self.scheduler_config.max_num_seqs * queries.width(self.vllm_config))

    def dummy_run(self, tokens, **kwargs):
        """Eagerly, with attention. The V2 runner does so if it has no graphs, with all adapters, and ignores the arguments that the V1 runner needs."""
        self.model_runner._dummy_run(tokens, cudagraph_runtime_mode=CUDAGraphMode.NONE, force_attention=True, **kwargs)

    def mark_capture(self):
        """vLLM captures in the middle of its warm-up. The manager of a start that takes part marks its phases itself."""
        capture = self.model_runner.capture_model

        def marked(*args, **kwargs):
            if not self.takes_part():
                self.phase("capture")
            elif self.session.run == medusa.PROFILE:
                torch.cuda.synchronize()
                self.watch = Watched(self.fixed, inputs.writes)
            if self.takes_part():
                self.own("name the sampler's memory", lambda: self.name(inputs.sampled()))
            self.resources = resources()
            used = capture(*args, **kwargs)
            self.phase("serving_warmup")
            return used

        self.model_runner.capture_model = marked

    def captured(self):
        """Recording and verifying runs end here: their purpose is done, and warm-up would overwrite the memory that they compare. The profile
        run goes on, so that all code that a start compiles has been compiled once."""
        run = os.environ.get(contract.ENV_RUN)
        reason = gate.resources_reason(self.resources, resources())
        if reason and self.session.run != medusa.RESTORE:
            self.session.refuse(reason)
        if run == contract.RUN_PROFILE:
            self.own("find inputs", self.find_inputs)
        if run in (contract.RUN_PROFILE, contract.RUN_RESTORE):
            return
        self.graphs.prepare(self.step, self.run_triggers)
        for t in inputs.workspaces():
            t.zero_()
        torch.cuda.synchronize()
        self.write_places()
        if self.code:
            self.cached(self.code.keep)
        self.session.ready()

    def look(self):
        torch.cuda.synchronize()
        self.watch.look()

    def find_inputs(self):
        """Buffers that serving changes are inputs, under any name. So are the buffers that the factories of captures write: a restored
        start calls the factories. Only the profile run serves: the other runs compare allocations, and the allocations of serving depend
        on its timing."""
        self.watch.hold()
        with steps.unconnected(self):
            for _ in steps.varied(self):
                self.look()
        for name, t in self.fixed:
            if name in self.watch.changed:
                self.session.place(name, t, medusa.INPUT, **inputs.zeros(t))

    def write_places(self):
        """For tests: the addresses of named tensors and graphs."""
        path = os.environ.get(contract.ENV_VLLM_PLACES)
        if path and self.session:
            path = engines.own_file(path, self.parallel_config) if self.parallel_config.world_size == 1 else f"{path}.{self.rank}"
            with open(path, "w", encoding="utf-8") as f:
                json.dump(self.session.places() | {"process": os.getpid()}, f)

    def drop(self, reason):
        if self.graphs:
            self.graphs.use.drop(reason)
