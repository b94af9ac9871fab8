"""Captures of a start: how many, of which states, and what they change in the worker's Python state.

In: calls before the engine is made. Out: made, states, changes. Nothing here fails.
"""

import state
import torch
from vllm.v1.worker import gpu_worker
from vllm.v1.worker.gpu import cudagraph_utils

made = 0


def count():
    """All of them: vLLM takes those of its profile back from its own counter."""
    end = torch.cuda.CUDAGraph.capture_end

    def counted(*args):
        global made
        made += 1
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


def watch():
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
