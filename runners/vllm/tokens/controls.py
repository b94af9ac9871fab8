"""Mistakes that have to change tokens, and that `medusa materialize` has to refuse.

In: a start of the engine; TOKENS_MISTAKE names the mistake that this start is to have, TOKENS_SPOIL the program that makes mistakes in artifacts,
TOKENS_GRAPH has words of the label of the graph that gets it. Out: the same engine with the mistake, and a line that says so. Fails: as the program does.

All mistakes but `metadata` are in the artifact. Those are made here only if verification restores a candidate; a start that serves is
given an artifact that has one.
"""

import os
import subprocess
import types

METADATA, CONTENT = "metadata", "content"
IN_ARTIFACT = "kernel", "pointer", CONTENT, "key"
COLLECTIVE = "hole", "holes"  # in artifacts of several ranks: a call that is left out, two calls in each other's place
ALL = (*IN_ARTIFACT, METADATA)


def verifies():
    """Whether this start restores a candidate that is to have a mistake."""
    if not os.environ.get("TOKENS_MISTAKE"):
        return False  # a start without Medusa has no plug-in
    from medusa_graphs import contract

    return os.environ.get(contract.ENV_RUN) == contract.RUN_CHECK_RESTORED


def of_candidate():
    """Before verification restores the candidate, it gets the mistake. Once for an engine."""
    mistake = os.environ.get("TOKENS_MISTAKE")
    if not verifies() or mistake == METADATA:
        return
    from medusa_graphs import contract

    candidate = os.environ[contract.ENV_ARTIFACT]
    subprocess.run([os.environ["TOKENS_SPOIL"], candidate, candidate, mistake, os.environ["TOKENS_GRAPH"]], check=True)


def of_replays():
    """Each replay of verification finds the metadata of another batch: sequences that are one token longer, or begin one token later. In each worker's process."""
    if not verifies() or os.environ["TOKENS_MISTAKE"] != METADATA:
        return
    import torch
    from medusa_graphs.session import Session

    provide = Session.provide

    def disturbed(session, before_replay=None, eager=None):
        @torch.inference_mode()
        def then(label):
            if before_replay:
                before_replay(label)
            place, _ = session.named[read_by(label)]
            next(t for t in session.held if isinstance(t, torch.Tensor) and t.data_ptr() == place).add_(1)

        provide(session, before_replay=then, eager=eager)

    Session.provide = disturbed
    print("metadata: each replay finds that of another batch")


def read_by(label):
    """The metadata that a graph reads. Attention, which reads lengths, lies between pieces. The engine of runners/torch has no lengths."""
    return "seq_lens" if label.startswith("FULL") else "positions"


def of_steps(engine):
    """The same as metadata, for each step of the engine of runners/torch."""
    decode = engine.decode

    def disturbed(engine, batch):
        Disturbed(types.SimpleNamespace(replay=lambda: decode(engine, batch)), engine.model.positions[:batch]).replay()

    engine.decode = disturbed


def metadata(runner):
    """Each step finds the metadata of another batch: sequences that are as short as another one of it."""
    from medusa_vllm import queries

    v2, least = hasattr(runner, "input_buffers"), queries.width(runner.vllm_config)
    held = runner.input_buffers if v2 else runner
    whole = runner.cudagraph_manager.graphs if v2 else getattr(runner.model, "concrete_cudagraph_entries", {})
    for desc, entry in list(whole.items()):
        if v2:
            whole[desc] = Disturbed(entry, held.seq_lens[: desc.num_tokens], least)
        else:
            entry.cudagraph = Disturbed(entry.cudagraph, held.seq_lens[: desc.num_tokens], least)
    if not whole:
        from medusa_vllm.pieces import wrappers

        for wrapper in wrappers(draft=False):
            for batch, entry in wrapper.concrete_cudagraph_entries.items():
                entry.cudagraph = Disturbed(entry.cudagraph, held.positions[: batch.num_tokens])


class Disturbed:
    def __init__(self, graph, read, least=1):
        self.graph, self.read, self.least = graph, read, least

    def __getattr__(self, name):
        return getattr(self.graph, name)

    def replay(self):
        kept = self.read.clone()
        # No sequence gets longer than it was, or shorter than its part of the step: memory without a token may hold NaNs, and their consequences end the engine.
        self.read.copy_(kept.minimum(kept.flip(0).clamp(min=self.least)))
        self.graph.replay()
        self.read.copy_(kept)
