"""The factors that an artifact is valid for.

In: vLLM's configuration and environment. Out: factors, strings by name. Fails: never.
"""

import json
import os

from . import checkpoints, contents, named
from .contents import digest


def weights(loader):
    """Loaders that read files leave the same weights. If one of them makes other allocations, the start is native."""
    # mutant: weights that no file has
    return "dummy" if loader == "dummy" else "files"


def draft(config):
    """The configuration of a separate draft model, or None."""
    return getattr(config.speculative_config, "draft_model_config", None)


def factors(config, vllm, torch, cuda, getters):
    """getters: vLLM's functions that read the environment, by variable."""
    model = config.model_config
    found = {
        "engine.name": "vllm",
        "engine.version": vllm,
        "engine.framework": "torch " + torch,
        "cuda.version": cuda,
        "model.config": digest(checkpoints.form(model.hf_config)),
        "model.weights": weights(config.load_config.load_format),
    }
    if draft(config):
        # mutant: draft model
        found["model.draft"] = digest(checkpoints.form(draft(config).hf_config))
    (settings, of_settings), (variables, of_variables) = named.settings(config), named.variables(getters)
    # The defaults of a release are the same everywhere, unless its sources were changed.
    defaults = {"engine.defaults": digest(json.dumps([of_settings, of_variables], sort_keys=True))}
    return found | contents.factors(os.environ) | settings | variables | defaults


CODE = named.ENV, named.SETTING, "model.config", "model.draft"  # factors that compiled code depends on


def chosen(factors):
    """A name for all that a start's compiled code depends on besides its sources."""
    # mutant: model of compiled code
    return digest(json.dumps({name: value for name, value in factors.items() if name.startswith(CODE)}, sort_keys=True))
