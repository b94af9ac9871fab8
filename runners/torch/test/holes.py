"""Collective calls in restored graphs, for a comparison with natively captured ones.

In: graphs by label, by the device's own account (compare.py). Out: restored graphs as if the calls had been captured in them, and how many calls
they hold. A restored call is an embedded graph of one node, in the place of the native node. Fails: never; an embedded graph of another form stays,
and differs from the native node.
"""

import dataclasses

COMMUNICATOR = "nccl_step"  # the kernel that the stand-in for NCCL launches for a call


def at(node):
    return node.facts[-1]


def is_call(node):
    return node.kind == "kernel" and node.facts[0] == COMMUNICATOR


def spliced(graph):
    inner = {at(node): node for node in graph.nodes if "/" in at(node)}
    nodes = []
    for node in graph.nodes:
        one = inner.get(at(node) + "/0")
        # mutant: graphs that stand for a call
        if node.kind == "child" and node.facts[1:3] == ["1", "0"] and one and is_call(one):
            del inner[at(one)]
            node = dataclasses.replace(one, facts=[*one.facts[:-1], at(node)])
        nodes.append(node)
    return dataclasses.replace(graph, nodes=[node for node in nodes if "/" not in at(node) or at(node) in inner])


def splice(graphs):
    return {label: spliced(graph) for label, graph in graphs.items()}


def calls(graphs):
    """The number of calls in graphs as they are. Calls in embedded graphs do not count."""
    return sum(is_call(node) for graph in graphs.values() for node in graph.nodes if "/" not in at(node))
