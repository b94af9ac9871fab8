"""The graphs of a compiled model's pieces: captures that are recorded, or replaced by restored graphs.

In: the session, and the batches that vLLM captures pieces for, once the model is compiled. Out: the entries of vLLM's wrappers
around the pieces, filled. Fails: as capture does; pieces that cannot be told apart are refused.

vLLM cuts a compiled model at its attention layers, and captures each part in between as a graph of its own, for each batch size. A piece
leaves its results (results.py) in memory of the graphs. Attention, which runs eagerly, and the next piece find them there.
"""

import contextlib
import functools
import json

from vllm.compilation.cuda_graph import CUDAGraphWrapper
from vllm.compilation.piecewise_backend import PiecewiseBackend
from vllm.config.compilation import CUDAGraphMode
from vllm.forward_context import get_forward_context

from medusa_graphs import marks

from . import adapters
from .labels import piece
from .results import Results

NOTE = "vllm.pieces"
DRAFT = "eagle_head"  # vLLM's name, in load_eagle_model


class Pieces(Results):
    def __init__(self, session, batches, part="", memory=None):
        """part: begins the labels of a draft model's pieces."""
        super().__init__(session, memory)
        self.part, self.wrappers = part, wrappers(bool(part)) if batches else []
        self.keys = {piece(i, b, part): (w, b) for b in batches for i, w in enumerate(self.wrappers)}
        self.results = {}  # by label
        numbers = [w.runnable.piecewise_compile_index for w in self.wrappers if isinstance(w.runnable, PiecewiseBackend)]
        if numbers != list(range(len(self.wrappers))):
            session.refuse(f"pieces {numbers} of a model that is compiled in {len(self.wrappers)}")

    @contextlib.contextmanager
    def recorded(self):
        """Inside this context, each piece that vLLM captures goes through run."""
        compiled = [w.runnable for w in self.wrappers]
        for i, w in enumerate(self.wrappers):
            w.runnable = functools.partial(self.run, i, w.runnable)
        try:
            yield
        finally:
            for w, runnable in zip(self.wrappers, compiled):
                w.runnable = runnable
        if self.wrappers:
            self.session.note(self.part + NOTE, json.dumps(self.results, separators=(",", ":")).encode())

    def run(self, index, runnable, *args):
        context = get_forward_context()
        if context.cudagraph_runtime_mode is not CUDAGraphMode.PIECEWISE:
            return runnable(*args)  # warm-up, or part of a whole step
        batch = context.batch_descriptor
        name = piece(index, batch, self.part)
        marks.graph(name, batch.num_tokens)
        self.session.captured.append(name)
        results = runnable(*args)
        self.results[name] = self.returned(results)
        return results

    def before_replay(self, runner, name):
        """Pieces contain adapters, but no attention."""
        adapters.select(runner, self.keys[name][1])

    def install(self, graphs):
        """Gives vLLM's wrappers the restored graphs, by label. Fails before it has given any."""
        noted = json.loads(self.session.noted(self.part + NOTE)) if self.wrappers else {}
        self.results = {name: noted[name] for name in self.keys}
        for result in {tuple(result[:2]): result for _, found in self.results.values() for result in found}.values():
            self.made(result)  # fails if its inputs are missing
        for name, (wrapper, batch) in self.keys.items():
            wrapper.concrete_cudagraph_entries[batch] = Entry(self, batch, graphs[name])
            wrapper.is_debugging_mode = False  # it would compare addresses of arguments with those that a capture had

    def rise(self):
        """After a sleep, results may lie elsewhere."""
        for wrapper, batch in self.keys.values():
            vars(wrapper.concrete_cudagraph_entries[batch]).pop("output", None)


class Entry:
    """Has the interface of vLLM's CUDAGraphEntry. There are thousands, so the results are made when the graph is first replayed."""

    input_addresses = None

    def __init__(self, pieces, batch, graph):
        self.pieces, self.batch_descriptor, self.cudagraph = pieces, batch, graph

    @functools.cached_property
    def output(self):
        return self.pieces.again(*self.pieces.results[self.cudagraph.label])


def wrappers(draft):
    """vLLM's wrappers around the pieces of the model, or of its draft model, in the order in which a forward runs them."""
    found = [w for w in CUDAGraphWrapper._all_instances if w.runtime_mode is CUDAGraphMode.PIECEWISE and drafts(w) == draft]
    return sorted(found, key=lambda w: getattr(w.runnable, "piecewise_compile_index", -1))


def drafts(wrapper):
    """Whether a piece is a draft model's: vLLM compiles one under a name of its own."""
    return getattr(getattr(wrapper.runnable, "vllm_backend", None), "prefix", "") == DRAFT
