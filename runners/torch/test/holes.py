"""Collective calls in restored graphs, for a comparison with natively captured ones.

In: graphs by label, by the device's own account (compare.py). Out: graphs in which each call is its kernel, the copies that belong to calls as graphs of their own, and how
many calls there are. Fails: never; nodes of another form stay as they are, and differ.

A call of NCCL is one kernel. A call of vLLM's custom all-reduce is a copy to the communicator's buffer and a kernel, and without Medusa the kernel alone. A call of symmetric
memory is a copy to its buffer, a kernel, and a copy from the buffer, also without Medusa. A restored graph embeds a graph of these nodes in the place of the call.
"""

import dataclasses

from compare import Node

NCCL, CUSTOM, SYMMETRIC = "nccl_step", "cross_device_reduce", ("multimem_all_reduce_kernel", "two_shot_all_reduce_kernel")  # in the names of the kernels
SIGNALS = 16  # offset of custom all-reduce's array with the address of each rank's flags


def at(node):
    return node.facts[-1]


def form(node):
    """The kinds of a call's nodes, one after another, by its kernel; None if a node is no such kernel."""
    if node.kind != "kernel":
        return None
    if any(name in node.facts[0] for name in SYMMETRIC):
        return ["memcpy", "kernel", "memcpy"]
    return ["memcpy", "kernel"] if CUSTOM in node.facts[0] else ["kernel"] if node.facts[0] == NCCL else None


def is_call(node):
    return form(node) is not None


def moved(node, place):
    return dataclasses.replace(node, facts=[*node.facts[:-1], place])


def embedded(node, graph):
    """The kernel of the call that a node embeds, and the copies around it; None if it embeds no call. graph: where the node is."""
    inside = [inner for inner in graph.nodes if at(inner).startswith(at(node) + "/")] if node.kind == "child" else []
    kernel = next(filter(is_call, inside), None)
    places = [at(inner) for inner in inside]
    edges = [(a, b) for a, b, _ in graph.edges if a in places]
    # mutant: graphs that stand for a call
    if not kernel or [inner.kind for inner in inside] != form(kernel) or sorted(edges) != list(zip(places, places[1:])):
        return None, []
    return kernel, [inner for inner in inside if inner is not kernel]


def spliced(graph):
    calls = set()
    nodes = []
    for node in graph.nodes:
        kernel, _ = embedded(node, graph)
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
    before = {a: b for a, b in pairs if nodes[a].kind == "memcpy" and (form(nodes[b]) or [])[:1] == ["memcpy"]}
    after = {b: a for a, b in pairs if nodes[b].kind == "memcpy" and (form(nodes[a]) or [])[2:] == ["memcpy"]}
    return before | after


def folded(graph):
    """A captured graph without the copies of its calls."""
    into = copied(graph)
    kept = [node for node in graph.nodes if at(node) not in into]
    number = {at(node): str(i) for i, node in enumerate(kept)} if into else {at(node): at(node) for node in kept}
    outer = [(into.get(a, a), into.get(b, b), data) for a, b, data in graph.edges]
    edges = [(number[a], number[b], data) for a, b, data in outer if a != b]
    return dataclasses.replace(graph, nodes=[moved(node, number[at(node)]) for node in kept], edges=edges)


def fold(graphs):
    return {label: folded(graph) for label, graph in graphs.items()}


def copies(graphs):
    """Graphs of nothing but the copies of calls, captured or embedded."""
    found = {}
    for label, graph in graphs.items():
        into = copied(graph)
        nodes = [copy for node in graph.nodes for copy in ([node] if at(node) in into else embedded(node, graph)[1])]
        found[label] = dataclasses.replace(graph, nodes=[moved(node, str(i)) for i, node in enumerate(nodes)], edges=[])
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
