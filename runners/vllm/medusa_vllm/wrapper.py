"""The V1 model runner's wrapper around the whole model, with captures that are recorded, or replaced by restored graphs.

In: the session, and a V1 model runner whose KV cache exists. Out: the wrapper's entries, filled. Fails: as capture does; a
restore that cannot be used ends in vLLM's own capture.
"""

import torch
from vllm.compilation.counter import compilation_counter
from vllm.compilation.cuda_graph import CUDAGraphEntry, CUDAGraphWrapper
from vllm.config.compilation import CUDAGraphMode
from vllm.forward_context import get_forward_context, is_forward_context_available
from vllm.v1.worker.workspace import lock_workspace

import medusa
from medusa import marks

from .inputs import one_token_each
from .labels import label
from .use import Use


class ModelWrapper(CUDAGraphWrapper):
    """Takes the place of the wrapper that the model runner made, before it has captured anything."""

    def __init__(self, session, runner, captured):
        made = runner.model
        super().__init__(made.runnable, made.vllm_config, made.runtime_mode, made.cudagraph_options)
        self.use, self.session, self.captured = Use(session), session, captured
        self.capture_model, self.dispatcher = runner.capture_model, runner.cudagraph_dispatcher
        self.width, self.dtype = runner.model_config.get_hidden_size(), runner.model_config.dtype
        self.runner, runner.model, runner.capture_model = runner, self, self.capture

    def capture(self):
        """Graphs of the pieces of a compiled model are captured in every start, before those that are restored."""
        descs = self.dispatcher.get_capture_descs()
        pieces, whole = ([d for d in descs if (d[0] is CUDAGraphMode.FULL) is full] for full in (False, True))
        size = self.capture_pieces(pieces) if pieces else 0
        self.session.phase("warmup")
        if self.use.restore([d for _, found in whole for d in found]):
            self.install()
        else:
            size += self.capture_only(whole)
            torch.cuda.synchronize()
            marks.blocks()
        self.captured()
        return size

    def capture_only(self, descs):
        self.dispatcher.get_capture_descs = lambda: descs
        try:
            return self.capture_model()
        finally:
            del self.dispatcher.get_capture_descs

    def capture_pieces(self, pieces):
        # Blocks that these captures leave would differ from what a restored graph gets.
        self.graph_pool = torch.cuda.graph_pool_handle()
        before = compilation_counter.num_cudagraph_captured
        size = self.capture_only(pieces)
        self.session.captured += [None] * (compilation_counter.num_cudagraph_captured - before)
        return size

    def install(self):
        for desc, graph in self.use.graphs.items():
            output = self.session.restored_tensor(name(desc), (desc.num_tokens, self.width), self.dtype)
            self.concrete_cudagraph_entries[desc] = CUDAGraphEntry(desc, graph, output)
        lock_workspace()  # as the captures would have

    def prepare(self):
        """Before verifying runs compare: attention backends keep what they prepared for the last step, which was a capture in one
        of the two and a triggering forward in the other."""
        largest = max(desc.num_tokens for desc in self.concrete_cudagraph_entries)
        self.runner._dummy_run(largest, cudagraph_runtime_mode=CUDAGraphMode.NONE, force_attention=True, uniform_decode=True)
        one_token_each(self.runner)

    def __call__(self, *args, **kwargs):
        context = get_forward_context() if is_forward_context_available() else None
        if not context or context.cudagraph_runtime_mode is not CUDAGraphMode.FULL or not self.use.usable():
            return self.runnable(*args, **kwargs)
        desc = context.batch_descriptor
        if desc in self.concrete_cudagraph_entries:
            return super().__call__(*args, **kwargs)
        self.use.begin_capture()
        marks.graph(label(desc), desc.num_tokens)
        self.session.captured.append(desc.num_tokens)
        runnable = self.runnable
        self.runnable = lambda *args, **kwargs: self.named(desc, runnable(*args, **kwargs))
        try:
            return super().__call__(*args, **kwargs)
        finally:
            self.runnable = runnable

    def named(self, desc, output):
        """The output lies in memory of the graph, which later graphs may use as well: vLLM holds no reference to it."""
        if isinstance(output, torch.Tensor) and output.shape == (desc.num_tokens, self.width) and output.dtype == self.dtype:
            self.session.place(name(desc), output, medusa.OUTPUT)
        else:
            self.session.refuse("a model whose output is not its hidden states alone")
        return output


def name(desc):
    return "output " + label(desc)
