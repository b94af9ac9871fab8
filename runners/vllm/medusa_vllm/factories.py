"""The calls that vLLM makes before each capture, without the captures.

In: the descriptors by mode, and vLLM's factory of forwards. Out: the state that the factory leaves in inputs, attention backends and the
model. The calls have the order of vLLM's own loop (CudaGraphManager.capture). Fails: as the factory does.
"""


def call(descs, create_forward_fn, breakable=False):
    """Runs none of the forwards that the factory returns: restored graphs replace them. breakable: whether graphs of prefills are."""
    by_name = {mode.name: found for mode, found in descs.items()}
    # mutant: factories in the order of captures
    for mode in "PIECEWISE", "FULL":
        for desc in by_name.get(mode, ()):
            create_forward_fn(desc, warmup=True)
            # mutant: factories of captures
            if mode == "FULL" or breakable:
                create_forward_fn(desc, warmup=False)
