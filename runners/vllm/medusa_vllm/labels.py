"""How graphs are named in an artifact.

In: vLLM's descriptors, restored graphs. Out: labels, and graphs by descriptor. Fails: KeysDiffer where the two disagree.
"""


class KeysDiffer(RuntimeError):
    """The artifact's graphs are not those that this engine would capture. The identity should have told."""


def label(desc):
    """Of a descriptor of either model runner. The V1 runner's does not hold the mode, and only that of whole steps has one."""
    v2 = hasattr(desc, "cg_mode")
    mode, uniform = (desc.cg_mode.name, desc.uniform_token_count) if v2 else ("FULL", desc.uniform)
    return f"{mode} tokens={desc.num_tokens} requests={desc.num_reqs} uniform={uniform} loras={desc.num_active_loras}"


def match(descs, graphs):
    """Restored graphs by the descriptors that vLLM dispatches to."""
    by_label = {g.label: g for g in graphs}
    wanted = {label(d): d for d in descs}
    if wanted.keys() != by_label.keys():
        raise KeysDiffer(f"install graphs: artifact has {sorted(by_label)}, vLLM would capture {sorted(wanted)}")
    return {d: by_label[name] for name, d in wanted.items()}
