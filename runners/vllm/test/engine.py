"""Starts vLLM offline and runs decode steps through its worker, as its scheduler would issue them.

In: a folder with config.json, an attention backend. Out: one JSON object: how it started, its graphs, how often a step
replayed one. Fails: with the exception.

The kernels of vLLM and Triton do nothing on the simulated GPU, the one that says how many tokens were sampled included,
so vLLM's scheduler would wait for ever. Steps are therefore issued here, to the worker, and tokens are not looked at.
"""

import argparse
import ctypes
import functools
import gc
import inspect
import json
import os
import sys
import tempfile

gc.disable()  # until all modules are imported: a third of a start would go into looking for garbage among what they made

from compilations import Compilations

COMPILATIONS = Compilations()  # before the modules that it watches are imported

import state
import torch
import vllm
from vllm import LLM
from vllm.compilation.breakable_cudagraph import BreakableCUDAGraphWrapper
from vllm.compilation.cuda_graph import CUDAGraphWrapper
from vllm.config import CUDAGraphMode
from vllm.v1.sample.rejection_sampler import PLACEHOLDER_TOKEN_ID
from vllm.v1.worker import gpu_model_runner, gpu_worker
from vllm.v1.worker.gpu import cudagraph_utils
from vllm.v1.worker.workspace import current_workspace_manager

gc.freeze()
gc.enable()

CAPTURE_SIZES = [1, 2, 4, 8]
PIECE_SIZES = [*CAPTURE_SIZES, 16]  # more tokens than requests
MAX_TOKENS = 480  # no length of a weight, whose own kernels may have a block for each row
PROMPT, STEPS = 5, 3  # no tokens of a decode step: vLLM 0.26 takes a prefill of as many for one


def arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("model")
    p.add_argument("--backend", default="FLASH_ATTN")
    p.add_argument("--graphs", default="FULL_DECODE_ONLY", help="vLLM's cudagraph_mode; the model is compiled where it has pieces")
    p.add_argument("--set", action="append", default=[], metavar="NAME=JSON", help="another argument of LLM")
    p.add_argument("--occupy", type=int, default=0, help="bytes of device memory that somebody else has")
    p.add_argument("--other-keys", action="store_true", help="restored graphs have other names than vLLM would capture")
    p.add_argument("--then-reload", action="store_true", help="weights are reloaded to another place after the first requests")
    p.add_argument("--no-requests", action="store_true")
    p.add_argument("--engine-process", action="store_true", help="vLLM's default: only start it, as a process of its own")
    p.add_argument("--places", help="file that receives where named tensors and graphs lie (medusa.Session.places)")
    return p.parse_args()


def graphs(mode, width):
    """width: tokens of a request in a decode step."""
    compiled = mode.endswith("PIECEWISE")
    return {"mode": 3 if compiled else 0, "cudagraph_mode": mode, "cudagraph_capture_sizes": [width * size for size in (PIECE_SIZES if compiled else CAPTURE_SIZES)]}


def settings(args):
    """The arguments of LLM."""
    more = {name: json.loads(value) for name, value in (pair.split("=", 1) for pair in args.set)}
    if "model" in more.get("speculative_config", {}):
        more["speculative_config"]["model"] = os.path.join(os.path.dirname(args.model), more["speculative_config"]["model"])
    return {
        "model": args.model,
        "load_format": "dummy",
        "skip_tokenizer_init": not os.path.exists(os.path.join(args.model, "tokenizer.json")),  # images need one
        "max_model_len": 256,
        "max_num_seqs": 8,
        "max_num_batched_tokens": MAX_TOKENS,
        "gpu_memory_utilization": 0.3,
        "attention_config": {"backend": args.backend},
        "compilation_config": graphs(args.graphs, 1 + more.get("speculative_config", {}).get("num_speculative_tokens", 0)),
        **more,
    }


def occupy(size):
    """Memory that is gone before the engine looks at the device. It is never given back."""
    cuda, address = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64()
    torch.cuda.init()
    torch.cuda.synchronize()
    if cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)):
        raise MemoryError(size)


def rename():
    """The identity has to exclude this: an artifact with graphs for other batches."""
    from medusa_vllm import use

    match = use.match
    use.match = lambda labels, restored: match(labels[1:], restored)


def adapters_on_host():
    """Which row is whose is found out by kernels that do nothing here: the result is old contents of the memory. Copies from the host are made."""
    from vllm.lora.ops.triton_ops import LoRAKernelMeta

    prepare = LoRAKernelMeta.prepare_tensors
    LoRAKernelMeta.prepare_tensors = lambda meta, mapping: prepare(meta, mapping.cpu())


def cleared_schedules():
    """FlashAttention's kernel that makes the schedule of a step is a no-op: the result is old contents of the memory, which a start with captures
    and one without have otherwise. A copy from the host is made."""
    from vllm.v1.attention.backends import flash_attn

    make = getattr(flash_attn, "get_scheduler_metadata", None)  # absent if FlashAttention is

    def cleared(*args, **kwargs):
        made = make(*args, **kwargs)
        # In a graph, as a draft model's first step makes the schedule of the next, zeros are part of it.
        return made.zero_() if torch.cuda.is_current_stream_capturing() else made.copy_(torch.zeros(made.shape, dtype=made.dtype))

    if make:
        flash_attn.get_scheduler_metadata = cleared


def reload(worker):
    """Weights that restored graphs cannot follow. vLLM's own part in it does not count: there is no checkpoint."""
    weight = next(worker.model_runner.model.parameters())
    weight.data = weight.data.clone()
    try:
        worker.reload_weights(weights_iterator=iter(()), is_checkpoint_format=False)
    except Exception as e:
        print(f"reload: {type(e).__name__}: {e}")


def mark(text):
    """A line in the simulated GPU's log of calls."""
    ctypes.CDLL("libcuda.so.1").calllog_mark(text.encode())


class Counted:
    """A graph, and how often graphs were launched."""

    launches = 0

    def __init__(self, graph):
        self.graph = graph

    def __getattr__(self, name):
        return getattr(self.graph, name)

    def replay(self):
        Counted.launches += 1
        self.graph.replay()


# The managers of a draft model, in the order in which vLLM captures.
DRAFTS = {"draft prefill ": "prefill_cudagraph_manager", "draft decode ": "decode_cudagraph_manager"}
MODELS = {"": "backbone", "draft prefill ": "eagle_head"}  # vLLM's names for what it compiles


def whole_steps(runner):
    """The model runner's dictionary of graphs of whole steps, of the V2 runner; of the V1 runner, whose entries hold them."""
    if hasattr(runner, "cudagraph_manager"):
        return runner.cudagraph_manager.graphs if runner.cudagraph_manager else {}
    return getattr(runner.model, "concrete_cudagraph_entries", {})


def all_steps(runner):
    """The dictionaries of the model and of its draft model, by what their labels begin with."""
    managers = {part: getattr(getattr(runner, "speculator", None), name, None) for part, name in DRAFTS.items()}
    return {"": whole_steps(runner)} | {part: manager.graphs for part, manager in managers.items() if manager}


def pieces(model="backbone"):
    """vLLM's wrappers around the pieces of a compiled model, in order."""
    found = [w for w in CUDAGraphWrapper._all_instances if w.runtime_mode is CUDAGraphMode.PIECEWISE and w.runnable.vllm_backend.prefix == model]
    return sorted(found, key=lambda w: w.runnable.piecewise_compile_index)


def all_entries():
    """What the labels of pieces begin with, a piece's index, a batch, and vLLM's entry."""
    for part, model in MODELS.items():
        for i, wrapper in enumerate(pieces(model)):
            yield from ((part, i, batch, entry) for batch, entry in wrapper.concrete_cudagraph_entries.items())


def broken():
    """The entries of vLLM's wrapper around a model whose graphs are breakable, by batch."""
    return {batch: entry for wrapper in BreakableCUDAGraphWrapper._all_instances for batch, entry in wrapper.entries.items()}


def graphs_of(entry):
    """Those of the steps of an entry that are graphs; the others are calls."""
    return [step for step in entry.capture.segments if hasattr(step, "__self__")]


def arguments_of(call):
    """Of a call between two graphs, the tensors: of vLLM's own, and of what takes its place."""
    if isinstance(call, functools.partial):
        args, kwargs = call.args, call.keywords
    else:
        of = inspect.getclosurevars(call).nonlocals
        args, kwargs = of["weak_args"], of["weak_kwargs"]
    return [t for t in [*args, *kwargs.values()] if isinstance(t, torch.Tensor)]


def count(runner):
    for graphs in all_steps(runner).values():
        for desc, held in graphs.items():
            if hasattr(held, "cudagraph"):
                held.cudagraph = Counted(held.cudagraph)
            else:
                graphs[desc] = Counted(held)
    for *_, entry in all_entries():
        entry.cudagraph = Counted(entry.cudagraph)
    for entry in broken().values():
        entry.capture.segments[:] = [Counted(step.__self__).replay if hasattr(step, "__self__") else step for step in entry.capture.segments]


def known_tokens():
    """The V1 runner looks for n-grams among the tokens of a request, which no kernel has computed here: one a step is sampled, and no draft accepted."""
    sample = gpu_model_runner.GPUModelRunner._sample

    def one(runner, *args):
        out = sample(runner, *args)
        tokens = torch.full(out.sampled_token_ids.shape, PLACEHOLDER_TOKEN_ID, dtype=runner.sampled_token_ids_pinned_cpu.dtype)
        tokens[:, 0] = 0
        out.sampled_token_ids = tokens.to(out.sampled_token_ids.device)
        return out

    gpu_model_runner.GPUModelRunner._sample = one


def adapter(worker, folder):
    """A request's adapter, which vLLM loads from the folder at the first step that needs it."""
    from safetensors.torch import save_file
    from vllm.lora.request import LoRARequest

    rank, model = 8, worker.model_config.hf_config
    with open(os.path.join(folder, "adapter_config.json"), "w", encoding="utf-8") as f:
        json.dump({"peft_type": "LORA", "r": rank, "lora_alpha": rank, "target_modules": ["o_proj"], "base_model_name_or_path": ""}, f)
    width = model.num_attention_heads * worker.model_config.get_head_size()
    layer = "base_model.model.model.layers.0.self_attn.o_proj."
    weights = {layer + "lora_A.weight": torch.ones(rank, width), layer + "lora_B.weight": torch.ones(model.hidden_size, rank)}
    save_file(weights, os.path.join(folder, "adapter_model.safetensors"))
    return LoRARequest("adapter", 1, folder)


def serve(worker, batch, adapter=None):
    """A prefill and some decode steps of `batch` requests. Returns how many graphs were launched."""
    # Not before: vLLM looks for plug-ins in all folders of the path.
    sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    from medusa_vllm import steps

    before = Counted.launches
    names = [f"request-{i}" for i in range(batch)]
    steps.run(worker, steps.prefill(worker, names, [PROMPT] * batch, adapter))
    for i in range(STEPS):
        steps.run(worker, steps.decode(worker, names, [PROMPT + i] * batch, 1 + i))
    steps.finish(worker, names)
    torch.cuda.synchronize()
    return Counted.launches - before


def expected(runner, batch):
    """How many graphs such requests take: one a decode step, or as many as the model has pieces, and these for a prefill of few tokens, or
    one if graphs of whole steps are for any step."""
    parts, mode = len(pieces()) or max((len(graphs_of(entry)) for entry in broken().values()), default=0), runner.compilation_config.cudagraph_mode
    few = PROMPT * batch <= max(runner.compilation_config.cudagraph_capture_sizes, default=0)
    prefill = 1 if mode is CUDAGraphMode.FULL else parts
    return STEPS * (1 if whole_steps(runner) else parts) + (prefill if few else 0) + drafted(runner, batch, few)


def drafted(runner, batch, few):
    """Those of a draft model: its first forward is like the model's step, and so is a graph if that is one. The others follow each step, prefills
    as well, and are one graph together if attention updates its metadata there."""
    steps, parts = all_steps(runner), len(pieces("eagle_head"))
    if len(steps) == 1:
        return 0
    first = STEPS * (1 if steps["draft prefill "] else parts) + (parts if few else 0)
    others = 1 if getattr(runner.speculator, "supports_decode_metadata_update", False) else runner.speculator.num_speculative_steps - 1
    return first + ((STEPS + 1) * others if any(desc.num_tokens >= batch for desc in steps["draft decode "]) else 0)


captures = 0


def count_captures():
    """All of them: vLLM takes those of its profile back from its own counter."""
    end = torch.cuda.CUDAGraph.capture_end

    def counted(*args):
        global captures
        captures += 1
        return end(*args)

    torch.cuda.CUDAGraph.capture_end = counted


states = []


def count_states():
    """Which batches the V2 runner builds the state of a capture for, in order. Verification, which builds it before each replay, ends
    with its process."""
    prepare = cudagraph_utils.prepare_inputs_to_capture

    def counted(num_reqs, num_tokens, *args, **kwargs):
        states.append((num_reqs, num_tokens))
        return prepare(num_reqs, num_tokens, *args, **kwargs)

    cudagraph_utils.prepare_inputs_to_capture = counted


changes = {}
# Attributes of the plug-in's own, in the classes that take the place of vLLM's.
KEPT = "create_forward_fn", "drafts", "inputs", "pieces", "session", "use"
HOLDERS = "cudagraph_manager", "model", "speculator.prefill_cudagraph_manager", "speculator.decode_cudagraph_manager"
OWN = (
    *("worker." + name for name in ("session", "graphs", "code", "names", "settings", "given", "resources")),
    *(f"worker.model_runner.{holder}.{name}" for holder in HOLDERS for name in KEPT),
)


def watch_capture():
    """What captures change in the worker's Python state, and what takes their place does."""
    warm_up = gpu_worker.Worker.compile_or_warm_up_model

    def watched(worker):
        capture = worker.model_runner.capture_model

        def compared(*args, **kwargs):
            states.clear()  # since 0.29, the memory profile captures as well
            before = state.of(worker, without=OWN)
            size = capture(*args, **kwargs)
            found = state.changes(before, state.of(worker, without=OWN))
            # A wrapper around the model, which vLLM's V1 runner makes for some modes only, and the plug-in for all.
            changes.update({path.replace(".model.runnable", ".model", 1): pair for path, pair in found.items()})
            return size

        worker.model_runner.capture_model = compared
        return warm_up(worker)

    gpu_worker.Worker.compile_or_warm_up_model = watched


def places(runner):
    """As medusa.Session.places, of a start without Medusa, under the names that its plug-in gives."""
    from medusa_vllm import inputs
    from medusa_vllm.labels import label, piece, segment
    from medusa.marks import extent

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
    return {"tensors": tensors, "restored": {}, "captured": [None] * (captures - len(labels)) + labels}


def keys(runner):
    """The keys by which vLLM finds its graphs."""
    steps = [f"{part}{desc}" for part, graphs in all_steps(runner).items() for desc in graphs]
    segments = [f"{batch} {len(graphs_of(entry))}" for batch, entry in broken().items()]
    return sorted([*steps, *segments, *(f"{part}{i} {batch}" for part, i, batch, _ in all_entries())])


def results():
    """The places and shapes of the pieces' results, by key; of breakable graphs, of the tensors that calls between them have, and of the result."""
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


def in_worker(wrapper, args):
    """Runs in a worker's process, which is forked from this one or this one itself."""
    return sys.modules["__main__"].report(wrapper.worker, args)


def report(worker, args):
    """Requests, and what one worker shows of them, as JSON."""
    medusa = getattr(worker, "graphs", None)
    if args.places and not os.environ.get("MEDUSA_RUN"):
        several = worker.parallel_config.world_size > 1
        with open(f"{args.places}.{worker.rank}" if several else args.places, "w", encoding="utf-8") as f:
            json.dump(places(worker.model_runner) | {"process": os.getpid()}, f)
    count(worker.model_runner)
    batches = [] if args.no_requests else [1, 3, 8]
    mark("requests")
    launches = {batch: serve(worker, batch) for batch in batches}
    adapted = {}
    if worker.vllm_config.lora_config:
        with tempfile.TemporaryDirectory(prefix="adapter-") as folder:
            adapted = {batch: serve(worker, batch, adapter(worker, folder)) for batch in batches}
    later = {}
    if args.then_reload:
        reload(worker)
        later = {batch: serve(worker, batch) for batch in batches}
    return json.dumps({
        "device": torch.cuda.get_device_name(0),
        "rank": worker.rank,
        "vllm": vllm.__version__,
        "torch": torch.__version__,
        "start": "restored" if medusa and medusa.use.restored else "native",
        "keys": keys(worker.model_runner),
        "results": results(),
        "max_tokens": MAX_TOKENS,
        "workspace": sum(t.numel() for t in current_workspace_manager()._current_workspaces if t is not None),
        "steps": {b: expected(worker.model_runner, b) for b in launches},
        "launches": launches,
        "adapted": adapted,
        "later": later,
        "states": states,
        "changes": changes,
        "compiled": COMPILATIONS.counts(),
    })


def main():
    args = arguments()
    COMPILATIONS.watch_triton()
    if args.places:
        os.environ["MEDUSA_VLLM_PLACES"] = args.places
    if args.occupy:
        occupy(args.occupy)
    if args.other_keys and os.environ.get("MEDUSA_RUN"):
        rename()
    count_captures()
    count_states()
    watch_capture()
    adapters_on_host()
    cleared_schedules()
    if "speculative_config" in settings(args):
        known_tokens()
    llm = LLM(**settings(args))
    if args.engine_process:
        return
    for line in llm.llm_engine.engine_core.engine_core.model_executor.collective_rpc(in_worker, args=(args,)):
        print(line)


if __name__ == "__main__":
    main()
