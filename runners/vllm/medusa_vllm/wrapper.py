"""The V1 model runner's wrapper around the whole model, with captures that are recorded, or replaced by restored graphs.

In: the session, and a V1 model runner whose KV cache exists. Out: the wrapper's entries, filled, and those of the pieces of a
compiled model. Fails: as capture does; a restore that cannot be used ends in vLLM's own capture.
"""

import functools

import torch
from vllm.compilation.cuda_graph import CUDAGraphEntry, CUDAGraphWrapper
from vllm.config.compilation import CUDAGraphMode
from vllm.forward_context import get_forward_context, is_forward_context_available
from vllm.v1.worker.workspace import lock_workspace

import medusa_graphs as medusa
from medusa_graphs import marks

from . import adapters
from .breakable import Breakable, wrapper_in
from .inputs import even_queries
from .labels import label
from .pieces import Pieces
from .use import Use


class ModelWrapper(CUDAGraphWrapper):
    """Takes the place of the wrapper that the model runner made, or of the bare model if vLLM captures its pieces alone,
    before anything is captured."""

    def __init__(self, session, runner, captured):
        made, config = runner.model, runner.vllm_config
        if isinstance(made, CUDAGraphWrapper):
            super().__init__(made.runnable, config, made.runtime_mode, made.cudagraph_options)
        else:
            super().__init__(made, config, CUDAGraphMode.FULL)
        self.use, self.session, self.captured = Use(session), session, captured
        self.capture_model, self.dispatcher = runner.capture_model, runner.cudagraph_dispatcher
        self.width, self.dtype = runner.model_config.get_hidden_size(), runner.model_config.dtype
        self.runner, runner.model, runner.capture_model = runner, self, self.capture

    def capture(self):
        self.session.phase("warmup")
        descs = {mode: descs for mode, descs in self.dispatcher.get_capture_descs()}
        whole, size = descs.get(CUDAGraphMode.FULL, []), 0
        batches, breakable = descs.get(CUDAGraphMode.PIECEWISE, []), wrapper_in(self.runnable)
        self.pieces = Breakable(self.session, batches, breakable) if breakable else Pieces(self.session, batches)
        self.session.provide(before_replay=torch.inference_mode()(functools.partial(self.before_replay, {label(desc): desc for desc in whole})))
        if not self.use.restore(lambda: [*self.pieces.keys, *map(label, whole)], functools.partial(self.install, whole)):
            self.use.begin_capture()
            with self.pieces.recorded():
                size = self.capture_model()
            torch.cuda.synchronize()
            marks.blocks()
        self.captured()
        return size

    def install(self, whole, graphs):
        outputs = {d: self.output(d) for d in whole}
        self.pieces.install(graphs)
        for desc, output in outputs.items():
            self.concrete_cudagraph_entries[desc] = CUDAGraphEntry(desc, graphs[label(desc)], output)
        self.is_debugging_mode = False  # it would compare addresses of arguments with those that a capture had
        lock_workspace()  # as the captures would have

    def rise(self):
        """Called when graphs are restored after a sleep. Their results may lie elsewhere."""
        for desc, entry in self.concrete_cudagraph_entries.items():
            entry.output = self.output(desc)
        self.pieces.rise()

    def output(self, desc):
        return self.session.restored_tensor(name(desc), (desc.num_tokens, self.width), self.dtype)

    def prepare(self, step, run_triggers):
        """Called before the two verifying runs compare. Libraries and attention backends keep state of their last steps: in one run
        these are captures, in the other triggering forwards. Therefore both take the same steps here, in the order of captures."""
        run_triggers()
        for tokens in sorted({desc.num_tokens for _, descs in self.dispatcher.get_capture_descs() for desc in descs}, reverse=True):
            step(tokens)
        even_queries(self.runner)

    def before_replay(self, whole, name):
        """Sets requests of the same number of tokens each, and for LoRA's kernels as many adapters as the graph's capture had."""
        even_queries(self.runner, whole.get(name))
        if name in whole:
            # mutant: adapters of a whole step's replay
            adapters.select(self.runner, whole[name])
        else:
            self.pieces.before_replay(self.runner, name)

    def __call__(self, *args, **kwargs):
        context = get_forward_context() if is_forward_context_available() else None
        if context and context.cudagraph_runtime_mode is not CUDAGraphMode.NONE and not self.use.usable():
            context.cudagraph_runtime_mode = CUDAGraphMode.NONE  # for the pieces
        if not context or context.cudagraph_runtime_mode is not CUDAGraphMode.FULL:
            return self.runnable(*args, **kwargs)
        desc = context.batch_descriptor
        if desc in self.concrete_cudagraph_entries:
            return super().__call__(*args, **kwargs)
        marks.graph(label(desc), desc.num_tokens)
        self.session.captured.append(label(desc))
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
            marks.result(name(desc))
        else:
            self.session.refuse("a model whose output is not its hidden states alone")
        return output


def name(desc):
    return "output " + label(desc)
