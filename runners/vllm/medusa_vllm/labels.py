"""How graphs are named in an artifact.

In: vLLM's descriptors, restored graphs. Out: labels, and graphs by label. Fails: KeysDiffer if the two disagree.
"""


import dataclasses

# The fields of a descriptor, and the words for them in a label. Releases of vLLM have different ones.
WORDS = {
    "num_tokens": "tokens",
    "num_reqs": "requests",
    "uniform_token_count": "uniform",
    "uniform": "uniform",
    "max_query_len": "query",
    "num_active_loras": "loras",
    "num_ubatches": "parts",
}
# A label begins with the mode. With LoRA, either all descriptors of a start have has_lora, or those with adapters.
OTHER = "cg_mode", "has_lora"


class KeysDiffer(RuntimeError):
    """The artifact's graphs are not the graphs that this engine would capture. The identity should have differed."""


def unknown(*kinds):
    """The fields of descriptor classes that a label does not contain."""
    # mutant: field of a descriptor that no label tells
    return sorted({f.name for kind in kinds for f in dataclasses.fields(kind)} - WORDS.keys() - set(OTHER))


def told(desc):
    # mutant: fields of a label
    return " ".join(f"{WORDS[f.name]}={getattr(desc, f.name)}" for f in dataclasses.fields(desc) if f.name in WORDS)


def label(desc, part=""):
    """The label of a whole step, by either runner's descriptor. The V1 runner's has no mode. part: of a draft model."""
    # mutant: label of a step
    return f"{part}{desc.cg_mode.name if hasattr(desc, 'cg_mode') else 'FULL'} {told(desc)}"


def piece(index, desc, part=""):
    """The label of a compiled model's piece, from its index and the descriptor of a forward."""
    # mutant: label of a piece
    return f"{part}PIECE {index} {told(desc)}"


def segment(index, desc, part=""):
    """The label of a graph between the breaks of a forward, from its index."""
    # mutant: label of a segment
    return f"{part}SEGMENT {index} {told(desc)}"


def match(labels, graphs):
    """Restored graphs by label. labels: of the graphs that vLLM dispatches to."""
    wanted, by_label = set(labels), {g.label: g for g in graphs}
    # mutant: graphs that vLLM would capture
    if wanted != by_label.keys():
        missing, unknown = (sorted(x)[:4] for x in (wanted - by_label.keys(), by_label.keys() - wanted))
        raise KeysDiffer(f"install graphs: vLLM would capture {missing or 'no others'}, the artifact has {unknown or 'no others'}")
    return by_label
