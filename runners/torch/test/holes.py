"""Collective calls in restored graphs, for a comparison with natively captured ones.

In: graphs by label, by the device's own account (compare.py). Out: graphs in which each call is one node, and how many calls they hold. Fails: never; nodes of another
form stay as they are, and differ.

A call of NCCL is one kernel, a call of vLLM's custom all-reduce a copy to the communicator's buffer and a kernel. A restored graph embeds a graph of these nodes in the
place of the call.
"""

import dataclasses

NCCL, CUSTOM = "nccl_step", "cross_device_reduce"  # in the names of the kernels
COPIED = 1 << 21  # the parameters of the copy have their places after all others


def at(node):
    return node.facts[-1]


def is_call(node):
    return node.kind == "kernel" and (node.facts[0] == NCCL or CUSTOM in node.facts[0])


def moved(node, place):
    return dataclasses.replace(node, facts=[*node.facts[:-1], place])


def joined(copy, kernel):
    """The copy and the kernel of a call as one node, in the kernel's place."""
    params = kernel.params | {COPIED + offset: value for offset, value in copy.params.items()}
    return dataclasses.replace(kernel, facts=[*copy.facts[:-1], *kernel.facts], params=params, kind="custom")


def embedded(node, inner):
    """The call that a node embeds, or None. inner: nodes of embedded graphs, by place."""
    first, second = inner.get(at(node) + "/0"), inner.get(at(node) + "/1")
    if node.kind != "child" or not first:
        return None
    # mutant: graphs that stand for a call
    if node.facts[1:3] == ["1", "0"] and is_call(first):
        return moved(first, at(node))
    if node.facts[1:3] == ["2", "1"] and second and first.kind == "memcpy" and is_call(second):
        return moved(joined(first, second), at(node))
    return None


def spliced(graph):
    inner = {at(node): node for node in graph.nodes if "/" in at(node)}
    nodes = []
    for node in graph.nodes:
        if call := embedded(node, inner):
            inner = {place: other for place, other in inner.items() if not place.startswith(at(node) + "/")}
            node = call
        nodes.append(node)
    return dataclasses.replace(graph, nodes=[node for node in nodes if "/" not in at(node) or at(node) in inner])


def splice(graphs):
    return {label: spliced(graph) for label, graph in graphs.items()}


def folded(graph):
    """A captured graph, with the copies and kernels of custom all-reduce as one node each."""
    nodes = {at(node): node for node in graph.nodes}
    into = {a: b for a, b, _ in graph.edges if a in nodes and b in nodes and nodes[a].kind == "memcpy" and CUSTOM in nodes[b].facts[0] and nodes[b].kind == "kernel"}
    calls = {kernel: joined(nodes[copy], nodes[kernel]) for copy, kernel in into.items()}
    kept = [calls.get(at(node), node) for node in graph.nodes if at(node) not in into]
    number = {at(node): str(i) for i, node in enumerate(kept)}
    edges = [(number[a], number[into.get(b, b)], data) for a, b, data in graph.edges if a not in into]
    return dataclasses.replace(graph, nodes=[moved(node, number[at(node)]) for node in kept], edges=edges)


def fold(graphs):
    return {label: folded(graph) if any(CUSTOM in str(node.facts[0]) for node in graph.nodes) else graph for label, graph in graphs.items()}


def calls(graphs):
    """The number of calls in graphs as they are. Calls in embedded graphs do not count."""
    return sum(is_call(node) or node.kind == "custom" for graph in graphs.values() for node in graph.nodes if "/" not in at(node))
