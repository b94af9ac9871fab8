"""The values of the weights that a start loads.

In: vLLM's loaders, at work. Out: other values of the same shapes, before anything is derived from them; the folders of the checkpoint's files. Fails:
ValueError if a loader leaves no place for other values.

Without other values, graphs that hold a value made from the weights would look like graphs of any weights (docs/fidelity.md).
"""

import contextlib
import os

import torch
from vllm.model_executor.model_loader import base_loader, dummy_loader, get_model_loader, weight_utils

import medusa_graphs as medusa

from . import checkpoints, identity

def replaced(name, t):
    """Other values. A tensor on the device changes where it lies, so that its loader makes the same allocations as in each start."""
    made = medusa.other_weights(name, t)
    return t.copy_(made) if t.is_cuda else made


def loaded(told):
    """A context in which models are loaded as the session has told."""
    return others() if told == medusa.WEIGHTS_OTHER else contextlib.nullcontext()


@contextlib.contextmanager
def others():
    """Models that are loaded meanwhile have other weights than their checkpoints."""
    make, fill, changed = base_loader.initialize_model, weight_utils.initialize_single_dummy_weight, []

    def made(*args, **kwargs):
        model = make(*args, **kwargs)
        load = model.load_weights

        def load_weights(weights, *more, **how):
            def each():
                for name, t in weights:
                    changed.append(name)
                    yield name, replaced(name, t)

            return load(each(), *more, **how)

        model.load_weights = load_weights
        return model

    def filled(param, *args, **kwargs):
        fill(param, *args, **kwargs)
        if param.device.type != "meta":
            changed.append("")
            with torch.no_grad():
                replaced("", param)

    base_loader.initialize_model = made
    weight_utils.initialize_single_dummy_weight = dummy_loader.initialize_single_dummy_weight = filled
    try:
        yield
    finally:
        base_loader.initialize_model = make
        weight_utils.initialize_single_dummy_weight = dummy_loader.initialize_single_dummy_weight = fill
    if not changed:
        raise ValueError("load other weights: the loader gives the model no values that could be changed")


def factors(told, config):
    """What the identity says of the weights' contents, as the session has told."""
    if told == medusa.WEIGHTS_OTHER:
        return {"model.checkpoint": "other"}
    return {"model.checkpoint": digest(config)} if told == medusa.WEIGHTS_COUNT else {}


def digest(config):
    """A digest of the contents of the weights of a model and its draft model."""
    if config.load_config.load_format == "dummy":
        return "dummy"
    models = [config.model_config] + ([identity.draft(config)] if identity.draft(config) else [])
    return checkpoints.contents([folder(config.load_config, model) for model in models])


def folder(load, model):
    if os.path.isdir(model.model):
        return model.model
    from huggingface_hub import snapshot_download  # a start that needs no contents does not import it

    get_model_loader(load).download_model(model)
    return snapshot_download(model.model, revision=model.revision, cache_dir=load.download_dir, local_files_only=True)
