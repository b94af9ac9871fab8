"""The graphs of a draft model, which vLLM's V2 runner captures after those of the model (speculative decoding by EAGLE or MTP).

In: a model runner whose draft model is loaded, and the manager of its model's graphs. Out: managers in the place of the draft model's, whose captures are
recorded, or replaced by restored graphs together with those of the model. Fails: as capture does.

vLLM captures the first forward of a draft model with all tokens of a step, and the others with one token for each request. Each kind has a manager.
"""

from vllm.forward_context import BatchDescriptor


def speculator(runner):
    """The runner's speculator if it has a draft model, or None."""
    found = getattr(runner, "speculator", None)
    if found is None:
        return None
    from vllm.v1.worker.gpu.spec_decode.speculator import DraftModelSpeculator  # only for starts with drafts

    return found if isinstance(found, DraftModelSpeculator) else None


def reason(runner):
    """Why a draft model's graphs cannot be restored, or None. The V1 runner has drafters instead, some with a model."""
    found = speculator(runner) or getattr(runner, "drafter", None)
    if not hasattr(found, "model"):
        return None
    from vllm.v1.worker.gpu.spec_decode.eagle.speculator import EagleSpeculator
    from vllm.v1.worker.gpu.spec_decode.mtp.speculator import MTPSpeculator

    tested = EagleSpeculator, MTPSpeculator
    # mutant: speculators that were tested
    if type(found) in tested:
        return None
    return f"drafts by a {type(found).__name__} (supported: {', '.join(kind.__name__ for kind in tested)})"


def named(runner, lengths):
    """(name, tensor, bounds) of a draft model's inputs whose values have bounds. lengths: bounds of a sequence's length."""
    found = speculator(runner)
    if not found:
        return []
    inputs = found.input_buffers
    return [
        ("draft.input_ids", inputs.input_ids, {"lo": 0, "hi": found.vocab_size}),
        ("draft.positions", inputs.positions, {"lo": 0, "hi": found.max_model_len}),
        ("draft.seq_lens", inputs.seq_lens, lengths),
    ]


def inner(runner):
    """How many hidden states of inner layers the model hands to its draft model."""
    if not getattr(runner, "use_aux_hidden_state_outputs", False):
        return 0
    from vllm.v1.worker.gpu.spec_decode.eagle.eagle3_utils import get_eagle3_aux_layers_from_config

    return len(get_eagle3_aux_layers_from_config(runner.speculative_config) or runner.model.get_eagle3_default_aux_hidden_state_layers())


class Drafts:
    """Takes the place of a draft model's managers, if there is one."""

    def __init__(self, main, base):
        """main: the model's manager. base: the class that follows vLLM's manager class in the method resolution order."""
        self.main, self.speculator = main, speculator(main.runner)
        self.looking, self.asked = False, []  # managers that vLLM captures with, in order
        if self.speculator:
            s = self.speculator
            s.prefill_cudagraph_manager = followed(base, s.prefill_cudagraph_manager)(self, "draft prefill ", s.prefill_cudagraph_manager)
            s.decode_cudagraph_manager = followed(base, s.decode_cudagraph_manager)(self, "draft decode ", s.decode_cudagraph_manager)

    def look(self):
        """Calls the factories of all captures, in the order of captures."""
        # mutant: factories of a draft model's captures
        if self.speculator:
            self.looking = True
            try:
                self.speculator.capture()
            finally:
                self.looking = False


def followed(base, made):
    """A subclass of the given manager's class. Its managers share the graphs' Use with the model's manager."""

    class Manager(type(made), base):
        def __init__(self, drafts, part, made):
            super().__init__(**base.arguments(made))
            self.follow(drafts.main, part)
            self.drafts = drafts

        def capture(self, forward_fn, model_state, input_buffers, *args, **kwargs):
            self.inputs = input_buffers
            super().capture(forward_fn, model_state, input_buffers, *args, **kwargs)
            # mutant: last of a draft model's managers
            if not self.drafts.looking and self is self.drafts.asked[-1]:
                self.drafts.main.finish()

        def fill(self, progress_bar_desc):
            if self.drafts.looking:
                self.cut([BatchDescriptor(num_tokens=d.num_tokens) for d in self.descs("PIECEWISE")])
                self.call_factories()
                self.drafts.asked.append(self)
            # mutant: captures of a draft model whose graphs are restored
            elif not self.use.restored:
                self.record(progress_bar_desc)

    return Manager
