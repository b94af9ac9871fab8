"""The changes that a part of a start makes in the Python objects that vLLM's worker holds.

In: an object, before and after. Out: by path, the differences: scalars, kinds and shapes of tensors, keys of containers, and
whether another tensor is held. Fails: never; objects of other packages count by their class. Needs neither vLLM nor torch.
"""

import collections
import enum
import re

OWN = "vllm", "medusa_vllm"  # packages whose objects are looked into
MOST = 2000  # entries of a container that are looked into; of larger ones the number counts
CONTAINERS = dict, list, tuple, set, frozenset, collections.deque
SCALARS = type(None), bool, int, float, complex, str, bytes, enum.Enum, type


def of(root, name="worker", without=()):
    """By path, a description of each object that can be reached. A path in `without` is not followed."""
    # mutant: objects that refer to each other
    found, seen = {}, {id(root)}
    queue = collections.deque([(name, root)])
    while queue:
        path, thing = queue.popleft()
        found[path] = told(thing)
        for step, child in children(thing):
            at = path + step
            # mutant: state of the plug-in
            if at in without:
                continue
            if isinstance(child, SCALARS) or id(child) in seen:
                found[at] = told(child)
                continue
            seen.add(id(child))
            queue.append((at, child))
    return found


def told(thing):
    if is_tensor(thing):
        return f"tensor {thing.dtype} {tuple(thing.shape)} at {thing.data_ptr():#x}"
    if isinstance(thing, CONTAINERS):
        return f"{type(thing).__name__} of {len(thing)}" if len(thing) > MOST else f"{type(thing).__name__} of {keys(thing)}"
    if isinstance(thing, SCALARS) or type(thing).__name__ in ("dtype", "device"):
        return repr(thing)
    if type(thing).__module__ == "numpy" and hasattr(thing, "shape"):
        return f"array {thing.dtype} {thing.shape}"
    return f"{type(thing).__module__}.{type(thing).__qualname__}"


def is_tensor(thing):
    return hasattr(thing, "data_ptr") and isinstance(getattr(thing, "shape", None), tuple)


def keys(container):
    if isinstance(container, dict):
        return sorted(key(k) for k in container)
    if isinstance(container, (set, frozenset)):
        return sorted(key(k) for k in container)
    return len(container)


def key(thing):
    """Tuples and the descriptors of batches are keys by value, other objects by their class."""
    by_value = isinstance(thing, SCALARS) or isinstance(thing, tuple) or hasattr(thing, "__dataclass_fields__")
    return repr(thing) if by_value else told(thing)


def children(thing):
    """Pairs of a step, which is appended to the path, and an object."""
    if is_tensor(thing):
        return
    if isinstance(thing, CONTAINERS):
        if len(thing) > MOST:
            return
        if isinstance(thing, dict):
            yield from ((f"[{key(k)}]", v) for k, v in thing.items())
        elif not isinstance(thing, (set, frozenset)):
            yield from ((f"[{i}]", v) for i, v in enumerate(thing))
    if type(thing).__module__.split(".")[0] in OWN or hasattr(thing, "named_modules"):
        yield from ((f".{k}", v) for k, v in getattr(thing, "__dict__", {}).items())
        for owner in type(thing).__mro__:
            slots = vars(owner).get("__slots__", ())
            for k in (slots,) if isinstance(slots, str) else slots:
                if hasattr(thing, k) and k != "__dict__":
                    yield f".{k}", getattr(thing, k)


def changes(before, after):
    """By path, the old and the new description. Addresses count only as the same or another."""
    changed = {}
    for path in before.keys() | after.keys():
        was, now = before.get(path), after.get(path)
        if was != now:
            was, now = (t and re.sub(" at 0x[0-9a-f]+$", "", t) for t in (was, now))
            # mutant: another tensor of the same shape
            changed[path] = [was, now if now != was else f"another {now}"]
    return changed


def lost(native, restored, listed):
    """The changes that differ between a native and a restored start, and that no pattern lists."""
    patterns = [re.compile(re.escape(p).replace(r"\*", ".*")) for p in listed]
    differ = sorted(p for p in native.keys() | restored.keys() if native.get(p) != restored.get(p))
    # mutant: changes that are listed
    return {p: (native.get(p), restored.get(p)) for p in differ if not any(x.fullmatch(p) for x in patterns)}
