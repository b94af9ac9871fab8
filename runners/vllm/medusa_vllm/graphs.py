"""vLLM's graph manager with captures that are recorded, or replaced by restored graphs.

In: the session, and what vLLM's own manager is made from. Out: the manager's dictionary of graphs, filled. Fails: as
capture does; a restore that cannot be used ends in vLLM's own capture.
"""

import torch
from vllm.compilation.counter import compilation_counter
from vllm.config.compilation import CUDAGraphMode
from vllm.v1.worker.gpu.cudagraph_utils import CudaGraphManager, ModelCudaGraphManager

import medusa
from medusa import marks

from .inputs import one_token_each
from .labels import label
from .use import Use


class _Marked(CudaGraphManager):
    """Stands behind ModelCudaGraphManager in the order of classes, where it sees each descriptor before its capture."""

    def capture(self, create_forward_fn, progress_bar_desc="Capturing CUDA graphs"):
        def marked(desc, warmup):
            forward = create_forward_fn(desc, warmup)
            if not warmup and desc.cg_mode is CUDAGraphMode.FULL:
                self.use.begin_capture()
                marks.graph(label(desc), desc.num_tokens)
                self.session.captured.append(desc.num_tokens)
            return forward

        super().capture(marked, progress_bar_desc)


class GraphManager(ModelCudaGraphManager, _Marked):
    """Takes the place of the manager that the model runner made, before it has captured anything."""

    def __init__(self, session, runner, made, captured):
        super().__init__(
            made.vllm_config, made.device, made.cudagraph_mode, made.decode_query_len, lora_capture_cases=made.lora_capture_cases
        )
        self.use, self.session, self.runner, self.captured = Use(session), session, runner, captured
        # vLLM makes this at the first warm-up. Made here, it lies outside of what a restored start skips.
        rows = max((d.num_tokens for descs in self._capture_descs.values() for d in descs), default=0)
        self.hidden_states = torch.empty(
            (rows, runner.model_config.get_hidden_size()), dtype=runner.model_config.dtype, device=made.device
        )
        if made.cudagraph_mode.has_piecewise_cudagraphs():
            # Blocks that the pieces' captures left would differ from what a restored graph gets.
            self.pool = torch.cuda.graph_pool_handle()
        session.tensor("hidden_states", self.hidden_states, medusa.OUTPUT)

    @torch.inference_mode()
    def capture(self, *args, use_aux_hidden_state_outputs=False, **kwargs):
        self.capture_pieces(*args, use_aux_hidden_state_outputs=use_aux_hidden_state_outputs, **kwargs)
        self.session.phase("warmup")
        if self.use.restore([d for descs in self._capture_descs.values() for d in descs]):
            self.graphs, self._graphs_captured = self.use.graphs, True
            self.use_aux_hidden_state_outputs = use_aux_hidden_state_outputs
        else:
            super().capture(*args, use_aux_hidden_state_outputs=use_aux_hidden_state_outputs, **kwargs)
            torch.cuda.synchronize()
            marks.blocks()
        self.captured()

    def capture_pieces(self, *args, **kwargs):
        """Graphs of the pieces of a compiled model: vLLM's own captures, in every start, before those that are restored."""
        pieces = {mode: descs for mode, descs in self._capture_descs.items() if mode is not CUDAGraphMode.FULL}
        if not pieces:
            return
        self._capture_descs, whole = pieces, {m: d for m, d in self._capture_descs.items() if m not in pieces}
        before = compilation_counter.num_cudagraph_captured
        super().capture(*args, **kwargs)
        self.session.captured += [None] * (compilation_counter.num_cudagraph_captured - before)
        self._capture_descs = whole

    def prepare(self):
        """Before verifying runs compare: of the two, only one has captured, and so written the output and what attention backends
        keep of the last step. Both run the same step, without graphs."""
        captured, self._graphs_captured = self._graphs_captured, False
        self.runner._dummy_run(len(self.hidden_states), uniform_decode=True)
        self._graphs_captured = captured
        one_token_each(self.runner)
        self.hidden_states.zero_()

    def dispatch(self, *args, **kwargs):
        self._graphs_captured = self._graphs_captured and self.use.usable()
        return super().dispatch(*args, **kwargs)
