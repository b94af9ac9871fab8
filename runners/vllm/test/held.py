"""Which graphs an engine holds, and where they and their tensors lie, in a native start and in a restored one.

In: a model runner of vLLM. Out: vLLM's dictionaries and entries, and facts about them that have to be equal. Fails: never.
"""

import functools
import inspect

import captures
import torch
from vllm.compilation.breakable_cudagraph import BreakableCUDAGraphWrapper
from vllm.compilation.cuda_graph import CUDAGraphWrapper
from vllm.config import CUDAGraphMode

# The managers of a draft model, in the order in which vLLM captures.
DRAFTS = {"draft prefill ": "prefill_cudagraph_manager", "draft decode ": "decode_cudagraph_manager"}
MODELS = {"": "backbone", "draft prefill ": "eagle_head"}  # vLLM's names for the models that it compiles


def whole_steps(runner):
    """The graphs of whole steps, by descriptor: of the V2 runner its dictionary, of the V1 runner the entries that hold them."""
    if hasattr(runner, "cudagraph_manager"):
        return runner.cudagraph_manager.graphs if runner.cudagraph_manager else {}
    return getattr(runner.model, "concrete_cudagraph_entries", {})


def all_steps(runner):
    """The dictionaries of the model and of its draft model, by the beginning of their labels."""
    managers = {part: getattr(getattr(runner, "speculator", None), name, None) for part, name in DRAFTS.items()}
    return {"": whole_steps(runner)} | {part: manager.graphs for part, manager in managers.items() if manager}


def pieces(model="backbone"):
    """vLLM's wrappers around the pieces of a compiled model, in order."""
    found = [w for w in CUDAGraphWrapper._all_instances if w.runtime_mode is CUDAGraphMode.PIECEWISE and w.runnable.vllm_backend.prefix == model]
    return sorted(found, key=lambda w: w.runnable.piecewise_compile_index)


def all_entries():
    """(the beginning of the labels, index of the piece, batch, vLLM's entry) for each piece and batch."""
    for part, model in MODELS.items():
        for i, wrapper in enumerate(pieces(model)):
            yield from ((part, i, batch, entry) for batch, entry in wrapper.concrete_cudagraph_entries.items())


def broken():
    """The entries of vLLM's wrapper around a model whose graphs are breakable, by batch."""
    return {batch: entry for wrapper in BreakableCUDAGraphWrapper._all_instances for batch, entry in wrapper.entries.items()}


def graphs_of(entry):
    """The steps of an entry that are graphs. The others are calls."""
    return [step for step in entry.capture.segments if hasattr(step, "__self__")]


def arguments_of(call):
    """The tensors in the arguments of a call between two graphs: of vLLM's own call, or of the one that takes its place."""
    if isinstance(call, functools.partial):
        args, kwargs = call.args, call.keywords
    else:
        of = inspect.getclosurevars(call).nonlocals
        args, kwargs = of["weak_args"], of["weak_kwargs"]
    return [t for t in [*args, *kwargs.values()] if isinstance(t, torch.Tensor)]


def places(runner):
    """The same as medusa.Session.places, for a start without Medusa, under the names that the plug-in gives."""
    from medusa_vllm import inputs
    from medusa_vllm.labels import label, piece, segment
    from medusa_graphs.marks import extent

    graphs, labels = whole_steps(runner), []
    for part, steps in all_steps(runner).items():
        wrappers = pieces(MODELS[part]) if part in MODELS else []
        labels += [piece(i, batch, part) for batch in (wrappers[0].concrete_cudagraph_entries if wrappers else ()) for i in range(len(wrappers))]
        labels += [segment(i, batch) for batch, entry in broken().items() for i in range(len(graphs_of(entry))) if not part]
        labels += [label(desc, part) for desc in steps]
    found = [*inputs.weights(runner), *inputs.cached(runner), *inputs.made(runner)]
    if not hasattr(runner, "cudagraph_manager"):
        found += [("output " + label(desc), entry.output, 0, {}) for desc, entry in graphs.items()]
    else:
        manager = runner.cudagraph_manager
        found.append(("hidden_states", manager.hidden_states, 0, {}))
        found += [(f"hidden_states.{i}", t, 0, {}) for i, t in enumerate(manager.aux_hidden_states, 1)]
    tensors = {name: (t.data_ptr(), extent(t)) for name, t, _, _ in inputs.once(found, set())}
    return {"tensors": tensors, "restored": {}, "captured": [None] * (captures.made - len(labels)) + labels}


def keys(runner):
    """The keys by which vLLM finds its graphs."""
    steps = [f"{part}{desc}" for part, graphs in all_steps(runner).items() for desc in graphs]
    segments = [f"{batch} {len(graphs_of(entry))}" for batch, entry in broken().items()]
    return sorted([*steps, *segments, *(f"{part}{i} {batch}" for part, i, batch, _ in all_entries())])


def results():
    """The places and shapes of the pieces' results, by key. For breakable graphs: of the tensors in the calls between them, and of the result."""
    def places(output):
        tensors = output if isinstance(output, (tuple, list)) else [output]
        return [(type(output).__name__ if tensors is output else "", t.data_ptr(), t.shape, t.stride(), str(t.dtype)) for t in tensors]

    called = {
        f"{batch} {i}": places(arguments_of(step))
        for batch, entry in broken().items()
        for i, step in enumerate(entry.capture.segments)
        if not hasattr(step, "__self__")
    }
    left = {f"{batch}": places(entry.output) for batch, entry in broken().items()}
    return called | left | {f"{part}{i} {batch}": places(entry.output) for part, i, batch, entry in all_entries()}
