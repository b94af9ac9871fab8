"""A package's sources, and the definitions that a name in them refers to. No module is imported or run.

In: the folder that holds the package. Out: definitions as (module, name), the classes that an expression may be an instance of, as far as
annotations, constructors and assignments tell. Fails: with the error of a file that cannot be parsed; an unknown name has no definitions.
"""

import ast
import functools
import os

from medusa_vllm import source
from plugin import PACKAGE

DEEPEST = 12  # steps of assignments that refer to each other


class Module:
    def __init__(self, name, file, is_package, tree):
        self.name, self.file, self.is_package, self.tree = name, file, is_package, tree
        self.bound, self.members = source.bound(tree.body), {}
        self.imports = {}  # by the name that they have here: (module, name or None)
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                of = self.absolute(node)
                self.imports |= {a.asname or a.name: (of, a.name) for a in node.names}
            elif isinstance(node, ast.Import):
                self.imports |= {a.asname: (a.name, None) for a in node.names if a.asname}
                self.imports |= {a.name.split(".")[0]: (a.name.split(".")[0], None) for a in node.names if not a.asname}

    def definitions(self, name):
        """As source.definitions, with the members of each class cached."""
        owner, _, member = name.rpartition(".")
        if not owner:
            return self.bound.get(member, [])
        if owner not in self.members:
            self.members[owner] = [source.members(c) for c in self.classes(owner)]
        return [d for members in self.members[owner] for d in members.get(member, [])]

    def classes(self, name):
        return [d for d in self.definitions(name) if isinstance(d, ast.ClassDef)]

    def absolute(self, node):
        if not node.level:
            return node.module
        parts = self.name.split(".")
        parts = parts[: len(parts) - node.level + self.is_package]
        return ".".join([*parts, *([node.module] if node.module else [])])


class Tree:
    def __init__(self, folder):
        self.folder = folder

    @functools.cache
    def module(self, name):
        """None if the package does not hold it."""
        if name.split(".")[0] != PACKAGE:
            return None  # the folder may hold other packages
        base = name.replace(".", "/")
        for file, is_package in ((base + ".py", False), (base + "/__init__.py", True)):
            try:
                with open(os.path.join(self.folder, file), "rb") as f:
                    return Module(name, file, is_package, ast.parse(f.read()))
            except OSError:
                continue
        return None

    @functools.cache
    def resolve(self, module, name, depth=0):
        """The places (module, name) at which a name of a module is defined, through imports and aliases; of a module, (module, None)."""
        found = self.module(module)
        if found is None or depth > DEEPEST:
            return ()
        if name is None:
            return ((module, None),)
        outer, _, inner = name.rpartition(".")
        if outer:
            return tuple(m for o in self.resolve(module, outer, depth + 1) for m in self.member(o, inner))
        places = []
        for d in found.definitions(name):
            alias = self.aliases(found, d)
            places += [p for a in alias for p in self.resolve(module, a, depth + 1)] if alias else [(module, name)]
        if not places and name in found.imports:
            of, imported = found.imports[name]
            places = self.resolve(of, imported, depth + 1)
        if not places and self.module(f"{module}.{name}"):
            places = [(f"{module}.{name}", None)]
        if not places:
            places = self.lazy(found, name, depth)
        return tuple(dict.fromkeys(places))

    def aliases(self, module, definition):
        """`A = B if x else C` stands for the classes B and C."""
        value = definition.value if isinstance(definition, ast.Assign) else None
        named = [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
        names = [n.id for n in named if isinstance(n, ast.Name)]
        return [n for n in names if module.classes(n) or n in module.imports] if len(names) == len(named) else []

    def lazy(self, module, name, depth):
        """vLLM's package imports some names when they are first used: a dictionary says from where."""
        for d in module.bound.values() if module.is_package else ():
            value = getattr(d[0], "value", None)
            for key, place in zip(value.keys, value.values) if isinstance(value, ast.Dict) else ():
                if isinstance(key, ast.Constant) and key.value == name and isinstance(place, ast.Constant) and ":" in str(place.value):
                    of, member = place.value.split(":")
                    return self.resolve(module.name + of if of.startswith(".") else of, member, depth + 1)
        return ()

    def member(self, place, name):
        """Where an attribute of a class or a module is defined, in the class itself or the nearest that it inherits from."""
        module, outer = place
        if outer is None:
            return self.resolve(module, name)
        for m, c in self.lineage(place):
            if self.module(m).definitions(f"{c}.{name}"):
                return ((m, f"{c}.{name}"),)
        return ()

    def is_class(self, place):
        module, name = place
        return bool(name and "." not in name and self.module(module).classes(name))

    @functools.cache
    def lineage(self, place):
        """A class of the package and those that it inherits from, nearest first."""
        if not self.is_class(place):
            return ()
        module, name = place
        found = [place]
        for c in self.module(module).classes(name):
            for base in c.bases:
                for p in self.named(self.module(module), base):
                    found += self.lineage(p) if p != place else ()
        return tuple(dict.fromkeys(found))

    def named(self, module, expression):
        """The definitions that a name, or a chain of names, refers to."""
        if isinstance(expression, ast.Name):
            return self.resolve(module.name, expression.id)
        if isinstance(expression, ast.Attribute):
            return tuple(p for o in self.named(module, expression.value) for p in self.member(o, expression.attr))
        return ()
