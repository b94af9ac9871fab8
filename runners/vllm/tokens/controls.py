"""Mistakes of an engine that has started, each of which has to change tokens.

In: vLLM's model runner with its graphs. Out: the same runner with the mistake in it.
"""


def metadata(runner):
    """Graphs of whole steps find the lengths of the sequences in another order: those of another batch."""
    lengths = getattr(runner, "seq_lens", None)
    lengths = runner.input_buffers.seq_lens if lengths is None else getattr(lengths, "gpu", lengths)
    graphs = runner.cudagraph_manager.graphs if hasattr(runner, "cudagraph_manager") else None
    entries = graphs or runner.model.concrete_cudagraph_entries
    for desc, held in list(entries.items()):
        if graphs is None:
            held.cudagraph = Disturbed(held.cudagraph, lengths[: desc.num_tokens])
        else:
            graphs[desc] = Disturbed(held, lengths[: desc.num_tokens])


class Disturbed:
    def __init__(self, graph, lengths):
        self.graph, self.lengths = graph, lengths

    def __getattr__(self, name):
        return getattr(self.graph, name)

    def replay(self):
        self.lengths.copy_(self.lengths.flip(0))
        self.graph.replay()


ALL = {"metadata": metadata}
