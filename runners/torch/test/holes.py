"""Collective calls in restored graphs, for a comparison with natively captured ones.

In: graphs by label, by the device's own account (compare.py). Out: graphs in which each call is its kernel, the copies that belong to calls as graphs of their own, and how
many calls there are. Fails: never; nodes of another form stay as they are, and differ.

A call of NCCL is one kernel. A call of vLLM's custom all-reduce is a copy to the communicator's buffer and a kernel, and without Medusa the kernel alone. A restored graph
embeds a graph of these nodes in the place of the call.
"""

import dataclasses

from compare import Node

NCCL, CUSTOM = "nccl_step", "cross_device_reduce"  # in the names of the kernels
SIGNALS = 16  # offset of custom all-reduce's array with the address of each rank's flags


def at(node):
    return node.facts[-1]


def is_call(node):
    return node.kind == "kernel" and (node.facts[0] == NCCL or CUSTOM in node.facts[0])


def moved(node, place):
    return dataclasses.replace(node, facts=[*node.facts[:-1], place])


def embedded(node, inner):
    """The copy and the kernel of the call that a node embeds; None for what it lacks. inner: nodes of embedded graphs, by place."""
    first, second = inner.get(at(node) + "/0"), inner.get(at(node) + "/1")
    if node.kind != "child" or not first:
        return None, None
    # mutant: graphs that stand for a call
    if node.facts[1:3] == ["1", "0"] and is_call(first):
        return None, first
    if node.facts[1:3] == ["2", "1"] and second and first.kind == "memcpy" and is_call(second):
        return first, second
    return None, None


def inner_nodes(graph):
    return {at(node): node for node in graph.nodes if "/" in at(node)}


def spliced(graph):
    inner, calls = inner_nodes(graph), set()
    nodes = []
    for node in graph.nodes:
        _, kernel = embedded(node, inner)
        if kernel:
            calls.add(at(node))
            node = moved(kernel, at(node))
        nodes.append(node)

    def of_call(place):
        return place.partition("/")[0] in calls and "/" in place

    edges = [edge for edge in graph.edges if not of_call(edge[0])]
    return dataclasses.replace(graph, nodes=[node for node in nodes if not of_call(at(node))], edges=edges)


def splice(graphs):
    return {label: spliced(graph) for label, graph in graphs.items()}


def copied(graph):
    """The copies of a captured graph's calls: their places, and those of the kernels."""
    nodes = {at(node): node for node in graph.nodes if "/" not in at(node)}
    pairs = [(a, b) for a, b, _ in graph.edges if a in nodes and b in nodes]
    return {a: b for a, b in pairs if nodes[a].kind == "memcpy" and nodes[b].kind == "kernel" and CUSTOM in nodes[b].facts[0]}


def folded(graph):
    """A captured graph without the copies of its calls."""
    into = copied(graph)
    kept = [node for node in graph.nodes if at(node) not in into]
    number = {at(node): str(i) for i, node in enumerate(kept)} if into else {at(node): at(node) for node in kept}
    edges = [(number[a], number[into.get(b, b)], data) for a, b, data in graph.edges if a not in into]
    return dataclasses.replace(graph, nodes=[moved(node, number[at(node)]) for node in kept], edges=edges)


def fold(graphs):
    return {label: folded(graph) for label, graph in graphs.items()}


def copies(graphs):
    """Graphs of nothing but the copies of calls, captured or embedded."""
    found = {}
    for label, graph in graphs.items():
        inner, into = inner_nodes(graph), copied(graph)
        nodes = [embedded(node, inner)[0] or (node if at(node) in into else None) for node in graph.nodes]
        found[label] = dataclasses.replace(graph, nodes=[moved(node, str(i)) for i, node in enumerate(filter(None, nodes))], edges=[])
    return found


def written(graphs, ranks):
    """Of the array of addresses, the part that vLLM writes: the rest is old contents of the stack, in a restored start, too."""
    for node in (node for graph in graphs.values() for node in graph.nodes if node.kind == "kernel" and CUSTOM in node.facts[0]):
        node.params[SIGNALS] = node.params[SIGNALS][: 8 * ranks]
    return graphs


def only(graphs, restored, calls):
    """Graphs with all nodes left out but the calls of the restored graphs, or but the others."""
    left_out = Node("left out", [], {})

    def part(graph, like):
        # mutant: nodes that are compared beside calls
        return dataclasses.replace(graph, nodes=[x if is_call(z) == calls else left_out for x, z in zip(graph.nodes, like.nodes, strict=True)])

    return {label: part(graph, restored[label]) for label, graph in graphs.items()}


def calls(graphs):
    """The number of calls in graphs as they are. Calls in embedded graphs do not count."""
    return sum(is_call(node) for graph in graphs.values() for node in graph.nodes if "/" not in at(node))
