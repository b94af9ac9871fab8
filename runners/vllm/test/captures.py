"""The captures of a start: their number, their states, and the changes that they make in the worker's Python state.

In: calls before the engine is made. Out: made, states, changes. Fails: never.
"""

import state
import torch
from vllm.v1.worker import gpu_worker
from vllm.v1.worker.gpu import cudagraph_utils

made = 0


def count():
    """Counts all captures. vLLM's own counter leaves out those of its profile."""
    end = torch.cuda.CUDAGraph.capture_end

    def counted(*args):
        global made
        made += 1
        return end(*args)

    torch.cuda.CUDAGraph.capture_end = counted


states = []


def count_states():
    """Notes the batches for which the V2 runner builds the state of a capture, in order. Verification builds it before each replay,
    too, but its process ends before the notes are read."""
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
    """Notes the changes in the worker's Python state by captures, or by the steps that take their place."""
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
