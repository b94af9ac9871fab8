"""vLLM's graph manager with captures that are recorded, or replaced by restored graphs.

In: the session, and what vLLM's own manager is made from. Out: the manager's dictionary of graphs, filled. Fails: as
capture does; a restore that cannot be used ends in vLLM's own capture.
"""

import sys

import torch
from vllm.compilation.counter import compilation_counter
from vllm.config.compilation import CUDAGraphMode
from vllm.v1.worker.gpu.cudagraph_utils import CudaGraphManager, ModelCudaGraphManager

import medusa
from medusa import marks

from .labels import KeysDiffer, label, match


class _Marked(CudaGraphManager):
    """Stands behind ModelCudaGraphManager in the order of classes, where it sees each descriptor before its capture."""

    def capture(self, create_forward_fn, progress_bar_desc="Capturing CUDA graphs"):
        def marked(desc, warmup):
            forward = create_forward_fn(desc, warmup)
            if not warmup and desc.cg_mode is CUDAGraphMode.FULL:
                self.mark_capture()
                marks.graph(label(desc), desc.num_tokens)
                self.session.captured.append(desc.num_tokens)
            return forward

        super().capture(marked, progress_bar_desc)

    def mark_capture(self):
        """The phase begins once, also where a restore that cannot be used is followed by captures."""
        if not self.capturing:
            self.session.phase("capture")
            self.capturing = True


class GraphManager(ModelCudaGraphManager, _Marked):
    """Takes the place of the manager that the model runner made, before it has captured anything."""

    def __init__(self, session, runner, made, captured):
        super().__init__(
            made.vllm_config, made.device, made.cudagraph_mode, made.decode_query_len, lora_capture_cases=made.lora_capture_cases
        )
        self.session = session
        self.restored = self.capturing = False
        self.captured = captured
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
        if self.session.restoring and self.install():
            self.use_aux_hidden_state_outputs = use_aux_hidden_state_outputs
            self.captured()
            return
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

    def install(self):
        """Restored graphs in place of captured ones, or False, with nothing of them left."""
        self.mark_capture()
        restored = self.session.graphs()
        if restored is None:
            return False
        try:
            self.graphs = match([d for descs in self._capture_descs.values() for d in descs], restored.values())
        except KeysDiffer as e:
            self.session.refuse(str(e))
            return False
        self.restored = self._graphs_captured = True
        return True

    def dispatch(self, *args, **kwargs):
        """Memory or a module that restored graphs refer to may be gone: vLLM then runs the step eagerly."""
        if self.restored and self._graphs_captured and not next(iter(self.graphs.values())).usable():
            self.invalidate(self.session.reason())
        return super().dispatch(*args, **kwargs)

    def invalidate(self, reason):
        """From now on steps run eagerly: what the graphs refer to may have moved or changed."""
        print(f"medusa: restored graphs are no longer used: {reason}", file=sys.stderr, flush=True)
        self.session.invalidate(reason)
        self._graphs_captured = False
