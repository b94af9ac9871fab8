"""The names of vLLM that the plug-in uses, read from the plug-in's source.

In: the plug-in's folder. Out: Uses. Fails: as reading does.
"""

import ast
import dataclasses
import glob
import hashlib
import os

PACKAGE = "vllm"
BY_NAME = "getattr", "hasattr", "setattr"  # functions that take an attribute's name


@dataclasses.dataclass
class Uses:
    imported: set  # (module, name); without a name, the module itself
    attributes: set  # names that the plug-in reads, calls or sets of any object
    subclassed: dict  # (module, name) of a class of vLLM: the names of the methods that a subclass defines

    def digest(self):
        """By this, a test without vLLM notices a fingerprint that was made for another plug-in."""
        text = repr([sorted(self.imported, key=str), sorted(self.attributes), sorted((c, sorted(m)) for c, m in self.subclassed.items())])
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def uses(folder):
    found = Uses(set(), set(), {})
    for file in sorted(glob.glob(os.path.join(folder, "*.py"))):
        with open(file, "rb") as f:
            add(found, ast.parse(f.read()))
    return found


def add(found, tree):
    ours, others = imports(tree)
    found.imported |= set(ours.values())
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            root = chain(node)
            if root in ours and isinstance(node.value, ast.Name):
                found.imported.add(member(ours[root], node.attr))
            if root not in others:
                found.attributes.add(node.attr)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in BY_NAME and len(node.args) > 1:
            if isinstance(node.args[1], ast.Constant):
                found.attributes.add(node.args[1].value)
        elif isinstance(node, ast.ClassDef):
            defined = {s.name for s in node.body if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef))}
            for base in node.bases:
                if chain(base) in ours:
                    of = ours[chain(base)]
                    name = member(of, base.attr) if isinstance(base, ast.Attribute) else of
                    found.subclassed.setdefault(name, set()).update(defined)


def imports(tree):
    """The imports from vLLM, by the name that the module gives them, and the names of other packages."""
    ours, others = {}, set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for a in node.names:
                if node.level == 0 and node.module.split(".")[0] == PACKAGE:
                    ours[a.asname or a.name] = node.module, a.name
                elif node.level == 0:
                    others.add(a.asname or a.name)
        elif isinstance(node, ast.Import):
            for a in node.names:
                root = a.name.split(".")[0]
                if root == PACKAGE:
                    ours[a.asname or root] = a.name if a.asname else root, None
                else:
                    others.add(a.asname or root)
    return ours, others


def chain(node):
    """The name that a chain of attributes begins with."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def member(of, name):
    module, outer = of
    return (module, f"{outer}.{name}" if outer else name)
