"""vLLM's graph managers with captures that are recorded, or replaced by restored graphs.

In: the session, and the arguments of vLLM's own manager. Out: the manager's dictionary of graphs, filled, and those of the
pieces of a compiled model; likewise for a draft model's managers. Fails: as capture does; a restore that cannot be used ends in vLLM's own capture.
"""

import inspect

import torch
from vllm.config.compilation import CUDAGraphMode
from vllm.forward_context import BatchDescriptor
from vllm.v1.worker.gpu.cudagraph_utils import CudaGraphManager, ModelCudaGraphManager

import medusa
from medusa import marks

from . import adapters, drafts, factories
from .breakable import Breakable
from .inputs import even_queries
from .labels import label
from .pieces import Pieces
from .use import Use


class Captures(CudaGraphManager):
    """Stands behind a manager of vLLM's in the order of classes. vLLM's own capture of a model ends in this one."""

    def follow(self, main, part=""):
        """main: the model's manager, whose graphs are restored together with this one's. part: begins the labels."""
        self.main, self.part = main, part
        self.use, self.session, self.runner = main.use, main.session, main.runner

    @staticmethod
    def arguments(made):
        """What a manager of vLLM's was made with. Releases add arguments, which the manager keeps under their names."""
        names = list(inspect.signature(type(made).__init__).parameters)[1:]
        lost = [name for name in names if not hasattr(made, name)]
        # mutant: argument of vLLM's manager that it does not keep
        if lost:
            raise AttributeError(f"vLLM's graph manager does not keep {', '.join(lost)}")
        return {name: getattr(made, name) for name in names}

    def descs(self, mode):
        return self._capture_descs.get(CUDAGraphMode[mode], [])

    def cut(self, batches):
        """The parts that vLLM captures the model's forwards in, which are known once it is compiled. batches: as its forwards have them."""
        memory = None if self.main is self else self.main.pieces.memory
        if self.use_breakable_cg:
            self.init_breakable_cg_runner(self.runner.model)
            self.pieces = Breakable(self.session, batches, self.breakable_cg_runner, self.part, memory)
        else:
            self.pieces = Pieces(self.session, batches, self.part, memory)

    def by_label(self):
        return {label(d, self.part): d for d in self.descs("FULL")}

    def labels(self):
        return [*self.pieces.keys, *self.by_label()]

    def capture(self, create_forward_fn, progress_bar_desc="Capturing CUDA graphs"):
        self.create_forward_fn = create_forward_fn
        self.fill(progress_bar_desc)

    def call_factories(self):
        # mutant: factories of a restored start
        factories.call(self._capture_descs, self.create_forward_fn, self.use_breakable_cg)

    def record(self, progress_bar_desc):
        def marked(desc, warmup):
            forward = self.create_forward_fn(desc, warmup)
            if not warmup and desc.cg_mode is CUDAGraphMode.FULL:
                marks.graph(label(desc, self.part), desc.num_tokens)
                self.session.captured.append(label(desc, self.part))
            return forward

        self.use.begin_capture()
        with self.pieces.recorded():
            super().capture(marked, progress_bar_desc)

    def take(self, graphs):
        """Restored graphs, by label."""
        self.pieces.install(graphs)
        self.graphs, self._graphs_captured = {d: graphs[name] for name, d in self.by_label().items()}, True

    def rebuild(self, desc):
        """What attention backends keep for a step, as the graph's capture had it. Rows are a request's, with the tokens and lengths that
        verification chose: those of a capture count as padding, experts leave them out, and attention sees one token. So are block tables: since
        0.33 a capture clears its rows, and those of the one before."""
        inputs, tables = self.inputs, self.runner.block_tables
        kept = [(t, t.clone()) for t in (inputs.input_ids, inputs.positions, inputs.seq_lens, tables.slot_mappings, *tables.input_block_tables)]
        with adapters.made_up(self.runner):
            self.create_forward_fn(desc, False)
        for t, value in kept:
            # mutant: rows that verification chose
            t.copy_(value)
        inputs.is_padding.fill_(False)

    def dispatch(self, *args, **kwargs):
        captured = self._graphs_captured
        self._graphs_captured = captured and self.use.usable()
        try:
            return super().dispatch(*args, **kwargs)
        finally:
            self._graphs_captured = captured


class GraphManager(ModelCudaGraphManager, Captures):
    """Takes the place of the manager that the model runner made, before it has captured anything."""

    def __init__(self, session, runner, made, captured, prepared):
        """prepared is called in the run profile, once the factories of all captures were called."""
        super().__init__(**self.arguments(made))
        self.use, self.session, self.runner, self.captured, self.prepared = Use(session), session, runner, captured, prepared
        self.follow(self)
        self.inputs, self.drafts = runner.input_buffers, drafts.Drafts(self, Captures)
        # vLLM makes these at the first warm-up. Made here, they are no part of the phases that a restored start skips.
        rows, width = max(d.num_tokens for descs in self._capture_descs.values() for d in descs), runner.model_config.get_hidden_size()
        outputs = [torch.empty((rows, width), dtype=runner.model_config.dtype, device=made.device) for _ in range(1 + drafts.inner(runner))]
        self.hidden_states, *self.aux_hidden_states = outputs
        for i, t in enumerate(outputs):
            session.tensor("hidden_states" + (f".{i}" if i else ""), t, medusa.OUTPUT)

    @torch.inference_mode()
    def capture(self, *args, **kwargs):
        self.cut([self.in_forward(d) for d in self.descs("PIECEWISE")])
        super().capture(*args, **kwargs)
        if not self.drafts.asked:
            self.finish()

    def fill(self, progress_bar_desc):
        self.session.provide(before_replay=torch.inference_mode()(self.before_replay))
        # In every start, and before the phases that a restored one skips: what factories write is no work that is missing there.
        self.call_factories()
        self.drafts.look()
        if self.session.run == medusa.PROFILE:
            # mutant: inputs that factories write
            self.prepared()
        self.session.phase("warmup")
        if not self.use.restore(lambda: [name for m in self.managers() for name in m.labels()], self.install):
            self.record(progress_bar_desc)

    def managers(self):
        return [self, *self.drafts.asked]

    def finish(self):
        """Behind the last capture of all."""
        if not self.use.restored:
            torch.cuda.synchronize()
            marks.blocks()
        self.captured()

    def install(self, graphs):
        for manager in self.managers():
            manager.take(graphs)

    def rise(self):
        """Graphs are there again after a sleep."""
        for manager in self.managers():
            manager.pieces.rise()

    def prepare(self, step, run_triggers):
        """Before verifying runs compare: of the two, only one has captured, and so written the outputs and the memory that libraries and attention
        backends keep of their last steps. Both take the same steps, without graphs, in the order of captures."""
        for manager in self.managers():
            manager._graphs_captured = False
        run_triggers()
        for tokens in sorted({desc.num_tokens for descs in self._capture_descs.values() for desc in descs}, reverse=True):
            step(tokens)
        for manager in self.managers():
            manager._graphs_captured = True
        even_queries(self.runner)
        for t in (self.hidden_states, *self.aux_hidden_states):
            t.zero_()

    def before_replay(self, name):
        """Whole steps have metadata of attention; pieces lie between attention."""
        for manager in self.managers():
            if name in manager.by_label():
                manager.rebuild(manager.by_label()[name])
            elif name in manager.pieces.keys:
                manager.pieces.before_replay(self.runner, name)

    def in_forward(self, desc):
        """The descriptor by which the pieces' wrappers find a graph, of the manager's."""
        return BatchDescriptor(num_tokens=desc.num_tokens, has_lora=self.runner.lora_config is not None, num_active_loras=desc.num_active_loras)
