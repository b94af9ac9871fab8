"""vLLM's compiled models, found again although the model, the sources or the user's home have moved.

In: vLLM's configuration, its model, the name of its settings (identity.py). Out: compiled code where this process looks for
it. Fails: as the file system does; vLLM then compiles.

vLLM's key of a model's compiled code covers all settings, including the paths of the model and of the user's home. The key of
Inductor's output for the pieces also covers the paths of the sources. Compiled code depends on none of these paths, and neither
does an artifact's identity. So recording runs note the sources of each folder of compiled code, and a start whose key differs gets
a link to the folder.
"""

import contextlib
import hashlib
import inspect
import json
import os
import sys

from vllm import envs
from vllm.compilation.caching import aot_compile_hash_factors
from vllm.compilation.decorators import _model_hash_key
from vllm.compilation.wrapper import TorchCompileWithNoGuardsWrapper

from .files import read

NOTE = "medusa.json"


def link(to, path):
    """Another engine of the start may make the same link."""
    with contextlib.suppress(FileExistsError):
        os.symlink(to, path)


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


class Code:
    """Make it before the model is compiled: compiling may change the configuration that keys are made from."""

    def __init__(self, config, model, settings):
        self.compilation, self.settings = config.compilation_config, settings
        self.named = bool(self.compilation.cache_dir)  # whether the user named the pieces' folder
        self.root = os.path.join(envs.VLLM_CACHE_ROOT, "torch_compile_cache")
        self.parts = {}  # each compiled part of the model, with the folder in which vLLM looks for it
        for part in model.modules() if envs.VLLM_USE_AOT_COMPILE else ():
            if isinstance(part, TorchCompileWithNoGuardsWrapper) and compiled_ahead(part):
                key = digest(str([*aot_compile_hash_factors(config), _model_hash_key(part.forward)]))
                self.parts[part] = os.path.join(self.root, "torch_aot_compile", key)

    def keep(self):
        """Notes the compiled folders and their sources, unless the user named the pieces' folder. With torch 2.13 and later, the folders hold the pieces."""
        pieces = self.compilation.cache_dir or ""
        for part, folder in self.parts.items():
            if os.path.isdir(folder) and not self.named:
                sources = {s.module: digest(s.content) for s in part.aot_compiled_fn.source_info().inlined_sources}
                note = {"settings": self.settings, "part": _model_hash_key(part.forward), "pieces": os.path.basename(pieces), "sources": sources}
                with open(os.path.join(folder, NOTE), "w", encoding="utf-8") as f:
                    json.dump(note, f)

    def find(self):
        """Gives the code that was compiled for this model the names by which vLLM looks for it."""
        for part, folder in self.parts.items():
            parent = os.path.dirname(folder)
            for other in os.listdir(parent) if os.path.isdir(parent) else ():
                note = read(os.path.join(parent, other, NOTE))
                if note and self.fits(part, note):
                    link(other, folder)
                    if note["pieces"] and not self.compilation.cache_dir:
                        self.compilation.cache_dir = os.path.join(self.root, note["pieces"])
                    break

    def fits(self, part, note):
        same = (note["settings"], note["part"]) == (self.settings, _model_hash_key(part.forward))
        return same and all(unchanged(*source) for source in note["sources"].items())


def compiled_ahead(part):
    """Since 0.33, a part may be left out of compiling ahead of time."""
    return not part.do_not_compile and getattr(part, "_allow_aot_compile", True)


def unchanged(module, content):
    """If a source changed, vLLM compiles the model anew, and must not take the code of its old pieces."""
    module = sys.modules.get(module)
    if module is None:
        return False
    with open(inspect.getfile(module), encoding="utf-8") as f:
        return digest(f.read()) == content
