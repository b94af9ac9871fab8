"""make vllm-upstream: the patch that docs/upstream proposes to vLLM fits the release that it names.

In: the version, and a folder that holds the package vllm, or none: then its wheel is fetched. Out: last the line with the counts. Fails: exit code 1 if the
patch does not apply, if a patched file cannot be parsed, or if the page's plug-in uses a name that the patched sources lack. vLLM is not run.
"""

import argparse
import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
DOCS = os.path.join(HERE, "..", "..", "docs", "upstream")
sys.path[:0] = [HERE, os.path.join(HERE, "fingerprint")]

import releases  # noqa: E402
from tree import Tree  # noqa: E402

HOOK = "get_v2_runner_components"


def stop(*what):
    print("vllm-upstream: FAIL", *what)
    sys.exit(1)


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def apply(patch, source, folder):
    """Copies the package's Python files to the folder, and applies the patch to them."""
    shutil.copytree(os.path.join(source, "vllm"), os.path.join(folder, "vllm"), ignore=lambda at, names: [n for n in names if not (n.endswith(".py") or os.path.isdir(os.path.join(at, n)))])
    done = subprocess.run(["git", "apply", "--unidiff-zero", "-p1", patch], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        stop("apply", patch, done.stderr)


def constructed(tree, module, attribute):
    """The names of the functions whose results are assigned to an attribute of self."""
    found = []
    for node in ast.walk(tree.module(module).tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name):
            found += [node.value.func.id for t in node.targets if isinstance(t, ast.Attribute) and t.attr == attribute]
    return found


def lacking(tree, plugin):
    """Names of vLLM that a plug-in imports or overrides, and that the sources do not define."""
    names, missing = {}, []
    for node in ast.walk(plugin):
        if isinstance(node, ast.ImportFrom):
            for a in node.names:
                names[a.name] = node.module
                module = tree.module(node.module)
                if not module or not module.definitions(a.name):
                    missing.append(f"{node.module}.{a.name}")
    for node in plugin.body:
        if isinstance(node, ast.ClassDef):
            for base in node.bases:
                if base.id in names:
                    missing += [f"{base.id}.{m.name}" for m in node.body if isinstance(m, ast.FunctionDef) and not defined(tree, names[base.id], base.id, m.name)]
    return missing


def defined(tree, module, owner, name):
    """Whether a class, or one that it derives from, defines a method."""
    found = tree.module(module)
    if found.definitions(f"{owner}.{name}"):
        return True
    for c in found.classes(owner):
        for base in c.bases:
            at, known = found.imports.get(getattr(base, "id", ""), (module, getattr(base, "id", None)))
            if known and tree.module(at) and defined(tree, at, known, name):
                return True
    return False


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--version", required=True)
    p.add_argument("--source", help="folder that holds the package vllm; without it, the version's wheel is fetched")
    args = p.parse_args()
    patch = os.path.abspath(os.path.join(DOCS, f"vllm-{args.version}.patch"))
    (plugin,) = re.findall(r"```python\n(.*?)```", read(os.path.join(DOCS, "vllm.md")), re.DOTALL)
    with tempfile.TemporaryDirectory(prefix="vllm-upstream-") as folder:
        source = args.source or releases.fetch(args.version, os.path.join(folder, "wheel"))
        apply(patch, source, folder)
        tree = Tree(folder)
        made = constructed(tree, "vllm.v1.worker.gpu.model_runner", "cudagraph_manager")
        if "manager_cls" not in made or "ModelCudaGraphManager" in made:
            stop("the model runner makes", *made)
        if missing := lacking(tree, ast.parse(plugin)):
            stop("the page's plug-in uses", *missing)
    lines = read(patch).splitlines()
    files, added = (sum(line.startswith(s) and not line.startswith(not_) for line in lines) for s, not_ in (("+++", "++++"), ("+", "+++")))
    print(f"vllm-upstream: PASS vllm={args.version} files={files} lines={added} plug-in={sum(bool(line.strip()) for line in plugin.splitlines())}")


if __name__ == "__main__":
    main()
