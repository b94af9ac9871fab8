"""How graphs are named in an artifact.

In: vLLM's descriptors, restored graphs. Out: labels, and graphs by label. Fails: KeysDiffer if the two disagree.
"""


class KeysDiffer(RuntimeError):
    """The artifact's graphs are not those that this engine would capture. The identity should have told."""


def label(desc):
    """Of a whole step's descriptor, of either model runner. The V1 runner's does not hold the mode."""
    v2 = hasattr(desc, "cg_mode")
    mode, uniform = (desc.cg_mode.name, desc.uniform_token_count) if v2 else ("FULL", desc.uniform)
    # mutant: label of a step
    return f"{mode} tokens={desc.num_tokens} requests={desc.num_reqs} uniform={uniform} loras={desc.num_active_loras}"


def piece(index, desc):
    """Of one of the pieces of a compiled model, by its place and the descriptor of a forward."""
    # mutant: label of a piece
    return f"PIECE {index} tokens={desc.num_tokens} requests={desc.num_reqs} uniform={desc.uniform} loras={desc.num_active_loras}"


def match(labels, graphs):
    """Restored graphs by the labels of those that vLLM dispatches to."""
    wanted, by_label = set(labels), {g.label: g for g in graphs}
    # mutant: graphs that vLLM would capture
    if wanted != by_label.keys():
        missing, unknown = (sorted(x)[:4] for x in (wanted - by_label.keys(), by_label.keys() - wanted))
        raise KeysDiffer(f"install graphs: vLLM would capture {missing or 'no others'}, the artifact has {unknown or 'no others'}")
    return by_label
