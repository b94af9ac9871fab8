"""vLLM's breakable graphs: a forward that is captured in segments, with eager calls in between, such as attention's.

In: the session, vLLM's wrapper around the model, and the batches that it captures. Out: the wrapper's entries, filled. Fails: as
capture does; eager calls that another process could not make are refused.

While vLLM captures, a call that breaks a graph ends one segment and begins the next. The wrapper keeps the segments and the calls of each batch in order, and a
replay goes through both. A restored start makes no captures, and so none of these calls. Therefore an artifact records the function of each call and its arguments.
"""

import contextlib
import functools
import inspect
import json
import sys

import torch
from vllm.compilation.breakable_cudagraph import BreakableCUDAGraphCapture, BreakableCUDAGraphWrapper, eager_break_during_capture
from vllm.compilation.cuda_graph import CUDAGraphWrapper
from vllm.config.compilation import CUDAGraphMode

from medusa_graphs import marks

from . import adapters
from .labels import segment, told
from .results import Results

NOTE = "vllm.breaks"
MODULE = "module"  # a kind of arguments beside those of results


class Breakable(Results):
    def __init__(self, session, batches, wrapper, part="", memory=None):
        """part: begins the labels of the segments."""
        super().__init__(session, memory)
        self.wrapper, self.part = wrapper, part
        self.batches = {told(batch): batch for batch in batches}
        self.steps = {}  # of each batch: the calls, and the forward's results

    @functools.cached_property
    def keys(self):
        """The batches by label. Read it after the captures or the restore: only then the number of a forward's segments is known."""
        if not self.steps and self.batches:
            self.steps = json.loads(self.session.noted(self.part + NOTE))
        found = [(t, batch, len(self.steps[t][0])) for t, batch in self.batches.items()]
        return {segment(i, batch, self.part): batch for _, batch, breaks in found for i in range(breaks + 1)}

    @contextlib.contextmanager
    def recorded(self):
        """Inside this context, the forward of each batch that vLLM captures goes through run."""
        self.wrapper._capture = self.capture
        try:
            yield
        finally:
            del self.wrapper._capture
        if self.batches:
            self.owned()
            self.session.note(self.part + NOTE, json.dumps(self.steps, separators=(",", ":")).encode())

    def capture(self, entry, args, kwargs):
        runnable = self.wrapper.runnable
        self.wrapper.runnable = functools.partial(self.run, entry.batch_descriptor, runnable)
        try:
            return type(self.wrapper)._capture(self.wrapper, entry, args, kwargs)
        finally:
            self.wrapper.runnable = runnable

    def run(self, batch, runnable, *args, **kwargs):
        """The forward within vLLM's capture, which has begun the first segment and ends the last one."""
        capture, calls = BreakableCUDAGraphCapture.current(), []
        add_eager = capture.add_eager

        def broken(call):
            calls.append(self.described(call))
            result = add_eager(call)
            self.begin(len(calls), batch)
            return result

        capture.add_eager = broken
        self.begin(0, batch)
        output = runnable(*args, **kwargs)
        self.steps[told(batch)] = calls, self.returned(output)
        return output

    def begin(self, index, batch):
        label = segment(index, batch, self.part)
        marks.graph(label, batch.num_tokens)
        self.session.captured.append(label)

    def described(self, call):
        """A call that vLLM makes between two segments: its function and its arguments, in a form that a restored start can look up."""
        of = inspect.getclosurevars(call).nonlocals
        function, args, kwargs = of["fn"], of["weak_args"], of["weak_kwargs"]
        name = function.__module__, function.__qualname__
        try:
            find(*name)
        except LookupError as e:
            self.session.refuse(f"breakable graphs: {e}")
        return name, [self.argument(a) for a in args], {k: self.argument(a) for k, a in kwargs.items()}

    def argument(self, value):
        if isinstance(value, torch.nn.Module):
            return MODULE, next(name for name, module in self.modules() if module is value)
        return self.said(value)

    def modules(self):
        return self.wrapper.unwrap().named_modules()

    def owned(self):
        """Tensors that are not part of a named one have to lie in memory of graphs: a restored start has no other tensors."""
        pool = tuple(self.wrapper.graph_pool)
        segments = [(s["address"], s["address"] + s["total_size"]) for s in torch.cuda.memory_snapshot() if tuple(s["segment_pool_id"]) == pool]
        # mutant: arguments that only this process has
        lost = [name for (at, size), name in self.memory.items() if not any(begin <= at and at + size <= end for begin, end in segments)]
        if lost:
            self.session.refuse(f"breakable graphs that call functions with tensors of an unknown origin ({len(lost)} of {len(self.memory)})")

    def before_replay(self, runner, name):
        adapters.select(runner, self.keys[name])

    def install(self, graphs):
        """Gives vLLM's wrapper the restored graphs, by label. Fails before it has given any."""
        steps = {batch: self.steps[t] for t, batch in self.batches.items()}
        calls = [call for calls, _ in steps.values() for call in calls]
        for name in {tuple(name) for name, *_ in calls}:
            find(*name)
        arguments = [a for _, args, kwargs in calls for a in (*args, *kwargs.values())]
        for argument in {tuple(a[:2]): a for a in (*arguments, *(r for _, (_, results) in steps.values() for r in results))}.values():
            self.passed(argument)  # fails if its inputs are missing
        for batch, (calls, output) in steps.items():
            segments = Segments(self, calls, [graphs[segment(i, batch, self.part)] for i in range(len(calls) + 1)])
            self.wrapper.entries[batch] = Entry(self, batch, segments, output)
        self.wrapper.is_debugging_mode = False  # it would compare addresses of arguments with those that a capture had

    def rise(self):
        """After a sleep, results may lie elsewhere."""
        for entry in self.wrapper.entries.values():
            vars(entry).pop("output", None)
            vars(entry.capture).pop("segments", None)

    def call(self, name, args, kwargs):
        return functools.partial(find(*name), *map(self.passed, args), **{k: self.passed(a) for k, a in kwargs.items()})

    def passed(self, argument):
        kind, *of = argument
        return next(module for name, module in self.modules() if name == of[0]) if kind == MODULE else self.made(argument)


class Segments:
    """Has the interface of vLLM's BreakableCUDAGraphCapture after its end. The call objects are made at the first replay, because there are thousands."""

    def __init__(self, breakable, calls, graphs):
        self.breakable, self.calls, self.graphs = breakable, calls, graphs

    @functools.cached_property
    def segments(self):
        """The graphs, with a call between each two."""
        between = [self.breakable.call(*call) for call in self.calls]
        return [step for pair in zip(self.graphs, [*between, None]) for step in (pair[0].replay, pair[1]) if step]

    def replay(self):
        for step in self.segments:
            step()


class Entry:
    """Has the interface of the entries of vLLM's wrapper."""

    input_addresses = None

    def __init__(self, breakable, batch, capture, output):
        self.breakable, self.batch_descriptor, self.capture, self.left = breakable, batch, capture, output

    @functools.cached_property
    def output(self):
        return self.breakable.again(*self.left)


def wrapper_in(model):
    """vLLM's wrapper in the V1 runner's model, or None. Before 0.30, it captured decode steps as well."""
    inner = model.runnable if isinstance(model, CUDAGraphWrapper) else model
    return inner if isinstance(inner, BreakableCUDAGraphWrapper) and getattr(inner, "runtime_mode", None) is CUDAGraphMode.PIECEWISE else None


BREAKS = eager_break_during_capture(lambda: None).__code__


def find(module, name):
    """The function of that name. Fails if the function breaks no graphs: an artifact may name no other functions. Outside of a capture, it only calls the
    function that vLLM decorated."""
    found = functools.reduce(lambda of, part: getattr(of, part, None), name.split("."), sys.modules.get(module))
    # mutant: functions that an artifact may name
    if getattr(found, "__code__", None) is not BREAKS:
        raise LookupError(f"find {module}.{name}: no function of that name breaks graphs")
    return found
