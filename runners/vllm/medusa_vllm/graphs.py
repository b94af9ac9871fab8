"""vLLM's graph manager with captures that are recorded, or replaced by restored graphs.

In: the session, and what vLLM's own manager is made from. Out: the manager's dictionary of graphs, filled. Fails: as
capture does; a restore that cannot be used ends in vLLM's own capture.
"""

import gc

import torch
from vllm.v1.worker.gpu.cudagraph_utils import CudaGraphManager, ModelCudaGraphManager

import medusa
from medusa import marks

from .labels import label, match


class _Marked(CudaGraphManager):
    """Stands behind ModelCudaGraphManager in the order of classes, where it sees each descriptor before its capture."""

    def capture(self, create_forward_fn, progress_bar_desc="Capturing CUDA graphs"):
        capturing = False

        def marked(desc, warmup):
            nonlocal capturing
            forward = create_forward_fn(desc, warmup)
            if not warmup:
                if not capturing:
                    self.session.phase("capture")
                    capturing = True
                marks.graph(label(desc), desc.num_tokens)
            return forward

        super().capture(marked, progress_bar_desc)


class GraphManager(ModelCudaGraphManager, _Marked):
    """Takes the place of the manager that the model runner made, before it has captured anything."""

    def __init__(self, session, runner, made, captured):
        super().__init__(
            made.vllm_config, made.device, made.cudagraph_mode, made.decode_query_len, lora_capture_cases=made.lora_capture_cases
        )
        self.session = session
        self.restored = False
        self.captured = captured
        # vLLM makes this at the first warm-up. Made here, it lies outside of what a restored start skips.
        rows = max((d.num_tokens for descs in self._capture_descs.values() for d in descs), default=0)
        self.hidden_states = torch.zeros(
            (rows, runner.model_config.get_hidden_size()), dtype=runner.model_config.dtype, device=made.device
        )
        session.tensor("hidden_states", self.hidden_states, medusa.OUTPUT)

    @torch.inference_mode()
    def capture(self, *args, use_aux_hidden_state_outputs=False, **kwargs):
        # What torch would give back at the first capture goes now, in every run, so that frees do not land in the phase.
        torch.cuda.synchronize()
        gc.collect()
        torch.cuda.empty_cache()
        if self.session.restoring and self.install():
            self.use_aux_hidden_state_outputs = use_aux_hidden_state_outputs
            self.captured()
            return
        marks.blocks()
        self.session.phase("warmup")
        super().capture(*args, use_aux_hidden_state_outputs=use_aux_hidden_state_outputs, **kwargs)
        torch.cuda.synchronize()
        marks.blocks()
        self.captured()

    def install(self):
        self.session.phase("warmup")
        self.session.phase("capture")
        restored = self.session.graphs()
        if restored is None:
            return False
        self.graphs = match([d for descs in self._capture_descs.values() for d in descs], restored.values())
        self.restored = self._graphs_captured = True
        return True

    def invalidate(self):
        """From now on steps run eagerly: what the graphs refer to may have moved or changed."""
        self._graphs_captured = False
