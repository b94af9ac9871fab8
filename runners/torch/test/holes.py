"""Collective calls of restored graphs, for comparison with natively captured ones.

In: the graphs of one rank, restored and native, by the device's own account (compare.py). Out: the restored ones as if the calls had been captured
in them: a restored call is an embedded graph of one node in the place of the native one. Fails: a difference if a place that has a call natively has none, or
another number of nodes, or if a restored graph has a communicator's node elsewhere.
"""

import dataclasses

COMMUNICATOR = "nccl_step"  # the kernel that the stand-in for NCCL launches for a call


def call(node):
    return node.kind == "kernel" and node.facts[0] == COMMUNICATOR


def spliced(c, name, native, restored):
    """The restored graphs, and how many calls they hold."""
    found, calls = {}, 0
    for label, graph in restored.items():
        inner = {node.facts[-1]: node for node in graph.nodes if "/" in node.facts[-1]}
        nodes = []
        for node in graph.nodes:
            at = node.facts[-1]
            if "/" in at and at.split("/")[0] in inner_of(graph):
                continue
            if node.kind == "child" and (one := inner.get(at + "/0")) is not None and call(one) and node.facts[:2] == ["1", "0"]:
                node = dataclasses.replace(one, facts=[*one.facts[:-1], at])
                calls += 1
            nodes.append(node)
        found[label] = dataclasses.replace(graph, nodes=nodes)
        places = [[node.facts[-1] for node in g.nodes if call(node)] for g in (native[label], found[label])] if label in native else [[], []]
        if places[0] != places[1]:
            c.differ(name, "graph", label, "calls natively at nodes", places[0], "restored at", places[1])
    return found, calls
