"""vLLM's graph manager with captures that are recorded, or replaced by restored graphs.

In: the session, and the arguments of vLLM's own manager. Out: the manager's dictionary of graphs, filled, and those of the
pieces of a compiled model. Fails: as capture does; a restore that cannot be used ends in vLLM's own capture.
"""

import inspect

import torch
from vllm.config.compilation import CUDAGraphMode
from vllm.forward_context import BatchDescriptor
from vllm.v1.worker.gpu.cudagraph_utils import CudaGraphManager, ModelCudaGraphManager

import medusa
from medusa import marks

from . import adapters, factories
from .inputs import one_token_each
from .labels import label
from .pieces import Pieces
from .use import Use


class _Base(CudaGraphManager):
    """Stands behind ModelCudaGraphManager in the order of classes. vLLM's own capture of a model ends in this one, which captures only
    if there are no restored graphs."""

    def capture(self, create_forward_fn, progress_bar_desc="Capturing CUDA graphs"):
        self.create_forward_fn = create_forward_fn
        self.session.provide(before_replay=torch.inference_mode()(self.before_replay))
        # In every start, and before the phases that a restored one skips: what factories write is no work that is missing there.
        # mutant: factories of a restored start
        factories.call(self._capture_descs, create_forward_fn)
        if self.session.run == medusa.PROFILE:
            # mutant: inputs that factories write
            self.prepared()
        self.session.phase("warmup")
        if self.use.restore([*self.pieces.keys, *map(label, self.whole)], self.install):
            return

        def marked(desc, warmup):
            forward = create_forward_fn(desc, warmup)
            if not warmup and desc.cg_mode is CUDAGraphMode.FULL:
                marks.graph(label(desc), desc.num_tokens)
                self.session.captured.append(label(desc))
            return forward

        self.use.begin_capture()
        with self.pieces.recorded():
            super().capture(marked, progress_bar_desc)
        torch.cuda.synchronize()
        marks.blocks()


def arguments(made):
    """What a manager of vLLM's was made with. Releases add arguments, which the manager keeps under their names."""
    names = list(inspect.signature(ModelCudaGraphManager.__init__).parameters)[1:]
    lost = [name for name in names if not hasattr(made, name)]
    # mutant: argument of vLLM's manager that it does not keep
    if lost:
        raise AttributeError(f"vLLM's graph manager does not keep {', '.join(lost)}")
    return {name: getattr(made, name) for name in names}


class GraphManager(ModelCudaGraphManager, _Base):
    """Takes the place of the manager that the model runner made, before it has captured anything."""

    def __init__(self, session, runner, made, captured, prepared):
        """prepared is called in the run profile, once the factories of all captures were called."""
        super().__init__(**arguments(made))
        self.use, self.session, self.runner, self.captured, self.prepared = Use(session), session, runner, captured, prepared
        self.whole = self._capture_descs.get(CUDAGraphMode.FULL, [])
        # vLLM makes this at the first warm-up. Made here, it is no part of the phases that a restored start skips.
        rows = max(d.num_tokens for descs in self._capture_descs.values() for d in descs)
        self.hidden_states = torch.empty(
            (rows, runner.model_config.get_hidden_size()), dtype=runner.model_config.dtype, device=made.device
        )
        session.tensor("hidden_states", self.hidden_states, medusa.OUTPUT)

    @torch.inference_mode()
    def capture(self, *args, **kwargs):
        batches = [self.in_forward(d) for d in self._capture_descs.get(CUDAGraphMode.PIECEWISE, [])]
        self.pieces = Pieces(self.session, batches)
        super().capture(*args, **kwargs)
        self.captured()

    def install(self, graphs):
        self.pieces.install(graphs)
        self.graphs, self._graphs_captured = {d: graphs[label(d)] for d in self.whole}, True

    def rise(self):
        """Graphs are there again after a sleep."""
        self.pieces.rise()

    def prepare(self, step, run_triggers):
        """Before verifying runs compare: of the two, only one has captured, and so written the output and the memory that libraries and attention
        backends keep of their last steps. Both take the same steps, without graphs, in the order of captures."""
        captured, self._graphs_captured = self._graphs_captured, False
        run_triggers()
        for tokens in sorted({desc.num_tokens for descs in self._capture_descs.values() for desc in descs}, reverse=True):
            step(tokens)
        self._graphs_captured = captured
        one_token_each(self.runner)
        self.hidden_states.zero_()

    def before_replay(self, name):
        """What attention backends keep for a step, as the graph's capture had it. Rows are a request's, with the tokens that
        verification chose: those of a capture count as padding, and experts leave them out. So are block tables: since 0.33 a capture
        clears its rows, and those of the one before. Pieces lie between attention."""
        desc = next((d for d in self.whole if label(d) == name), None)
        if desc is None:
            self.pieces.before_replay(self.runner, name)
            return
        inputs, tables = self.runner.input_buffers, self.runner.block_tables
        kept = [(t, t.clone()) for t in (inputs.input_ids, inputs.positions, tables.slot_mappings, *tables.input_block_tables)]
        with adapters.made_up(self.runner):
            self.create_forward_fn(desc, False)
        for t, value in kept:
            # mutant: rows that verification chose
            t.copy_(value)
        inputs.is_padding.fill_(False)

    def in_forward(self, desc):
        """The descriptor by which the pieces' wrappers find a graph, of the manager's."""
        return BatchDescriptor(num_tokens=desc.num_tokens, has_lora=self.runner.lora_config is not None, num_active_loras=desc.num_active_loras)

    def dispatch(self, *args, **kwargs):
        captured = self._graphs_captured
        self._graphs_captured = captured and self.use.usable()
        try:
            return super().dispatch(*args, **kwargs)
        finally:
            self._graphs_captured = captured
