"""The variables and the settings of a release of vLLM, read from its source, against the plug-in's tables of their classes.

In: a Tree. Out: the names, and what the tables say otherwise. Fails: with ValueError if the release does not keep its names where they are looked for.
"""

import ast
import glob
import os

from medusa_vllm import classes

VARIABLES = "environment_variables"  # of vllm/envs.py
FURTHER = "ray_noset_env_vars"  # variables that are in no table of vLLM's, but in its key of compiled code
DECORATORS = "config", "dataclass"
NO_FIELDS = "ClassVar", "InitVar"  # the latter is an argument, from which fields are made


def variables(tree):
    """The keys of vLLM's table of variables."""
    found, module = [], tree.module("vllm.envs")
    for node in ast.walk(module.tree) if module else ():
        targets = [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [])
        for target in (t.id for t in targets if isinstance(t, ast.Name)):
            if target == VARIABLES and isinstance(node.value, ast.Dict):
                found += [key.value for key in node.value.keys]
            elif target == FURTHER:
                found += [name.value for name in node.value.elts]
    if not found:
        raise ValueError(f"read variables of vLLM: envs.py has no {VARIABLES}")
    return found


def settings(tree):
    """The fields of the dataclasses of vLLM's configuration, as CLASS.FIELD."""
    found = []
    folder = os.path.join(tree.folder, "vllm", "config")
    for file in sorted(glob.glob(os.path.join(folder, "**", "*.py"), recursive=True)):
        module = tree.module(os.path.relpath(file, tree.folder).removesuffix(".py").removesuffix("/__init__").replace("/", "."))
        for c in module.tree.body:
            if isinstance(c, ast.ClassDef) and any(called(d) in DECORATORS for d in c.decorator_list):
                found += [f"{c.name}.{s.target.id}" for s in c.body if isinstance(s, ast.AnnAssign) and not ast.unparse(s.annotation).startswith(NO_FIELDS)]
    if not found:
        raise ValueError("read settings of vLLM: its folder config has no configuration")
    return found


def called(decorator):
    decorator = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(decorator).rpartition(".")[2]


def wrong(tree, release, supported):
    """A line for each name that no table has, and for a supported release also for each that a table has otherwise."""
    lines = []
    for what, file, found in ("variable", classes.VARIABLES, set(variables(tree))), ("setting", classes.SETTINGS, set(settings(tree))):
        rows = classes.table(file)
        # mutant: name that no table has
        lines += [f"no class: {what} {name} (add it to {file}: counts, contents or deployment)" for name in sorted(found - rows.keys())]
        if release in supported:
            # mutant: releases of a row
            lines += [f"other releases: {what} {name} of {file}" for name in sorted(rows) if classes.known(rows[name], release, supported) != (name in found)]
    return lines
