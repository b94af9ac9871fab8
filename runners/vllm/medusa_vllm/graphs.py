"""vLLM's graph managers with captures that are recorded, or replaced by restored graphs.

In: the session, and the arguments of vLLM's own manager. Out: the manager's dictionary of graphs, filled, and those of the
pieces of a compiled model; likewise for a draft model's managers. Fails: as capture does; a restore that cannot be used ends in vLLM's own capture.
"""

import inspect

import torch
from vllm.config.compilation import CUDAGraphMode
from vllm.forward_context import BatchDescriptor
from vllm.v1.worker.gpu.cudagraph_utils import CudaGraphManager, ModelCudaGraphManager

import medusa_graphs as medusa
from medusa_graphs import marks

from . import adapters, drafts, factories
from .breakable import Breakable
from .inputs import even_queries
from .labels import label
from .pieces import Pieces
from .use import Use


class Captures(CudaGraphManager):
    """Follows vLLM's manager class in the method resolution order. vLLM's own capture of a model ends in this class's capture."""

    def follow(self, main, part=""):
        """main: the model's manager, whose graphs are restored together with this one's. part: begins the labels."""
        self.main, self.part = main, part
        self.use, self.session, self.runner = main.use, main.session, main.runner

    @staticmethod
    def arguments(made):
        """The arguments that vLLM's manager was made with. Releases add arguments. The manager keeps each under its name."""
        names = list(inspect.signature(type(made).__init__).parameters)[1:]
        lost = [name for name in names if not hasattr(made, name)]
        # mutant: argument of vLLM's manager that it does not keep
        if lost:
            raise AttributeError(f"vLLM's graph manager does not keep {', '.join(lost)}")
        return {name: getattr(made, name) for name in names}

    def descs(self, mode):
        return self._capture_descs.get(CUDAGraphMode[mode], [])

    def cut(self, batches):
        """Finds the pieces or segments of the model's forwards. They are known once the model is compiled. batches: as the forwards have them."""
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
        """Takes restored graphs, by label."""
        self.pieces.install(graphs)
        self.graphs, self._graphs_captured = {d: graphs[name] for name, d in self.by_label().items()}, True

    def rebuild(self, desc):
        """Rebuilds the state that attention backends keep for a step, as the graph's capture had it. The rows stay those of a request, with
        the tokens and lengths that verification chose: the rows of a capture count as padding, experts leave them out, and attention sees one
        token. The block tables stay those of verification, too: since 0.33 a capture clears its own rows and those of the capture before it."""
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
        # Every start calls the factories before the phases that a restored start skips. So a restored start does not lack their writes.
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
        """Called after the last capture of all managers."""
        if not self.use.restored:
            torch.cuda.synchronize()
            marks.blocks()
        self.captured()

    def install(self, graphs):
        for manager in self.managers():
            manager.take(graphs)

    def rise(self):
        """Called when graphs are restored after a sleep."""
        for manager in self.managers():
            manager.pieces.rise()

    def prepare(self, step, run_triggers):
        """Called before the two verifying runs compare. Only one of them has captured, and so has written the outputs and the memory in
        which libraries and attention backends keep their last steps. Therefore both take the same steps here, without graphs, in the order of
        captures."""
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
        """Graphs of whole steps read metadata of attention. Pieces do not: they lie between the attention layers."""
        for manager in self.managers():
            if name in manager.by_label():
                manager.rebuild(manager.by_label()[name])
            elif name in manager.pieces.keys:
                manager.pieces.before_replay(self.runner, name)

    def in_forward(self, desc):
        """The descriptor by which the pieces' wrappers find a graph, made from the manager's descriptor."""
        return BatchDescriptor(num_tokens=desc.num_tokens, has_lora=self.runner.lora_config is not None, num_active_loras=desc.num_active_loras)
