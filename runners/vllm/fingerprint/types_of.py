"""The classes that an expression of the package may be an instance of.

In: a Tree, an expression and the method that holds it. Out: places of classes. Fails: never; a class that annotations, constructors and assignments do
not show is left out.
"""

import ast
import functools

from medusa_vllm import source
from tree import DEEPEST


class Types:
    def __init__(self, tree):
        self.tree, self.known, self.held, self.scopes = tree, {}, {}, {}

    def annotated(self, module, annotation):
        """All classes that an annotation names: of a container, those of its elements as well."""
        found = []
        for node in ast.walk(annotation) if annotation is not None else ():
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                try:
                    found += self.annotated(module, ast.parse(node.value, mode="eval").body)
                except SyntaxError:
                    continue
            elif isinstance(node, (ast.Name, ast.Attribute)):
                found += [p for p in self.tree.named(module, node) if self.tree.is_class(p)]
        return found

    def attribute(self, place, name):
        """The classes of a class's attribute. If assignments refer to each other, the first does not count twice."""
        key = place, name
        if key not in self.known:
            self.known[key] = ()
            self.known[key] = self.assigned(place, name)
        return self.known[key]

    def assigned(self, place, name):
        found = []
        for m, member in self.tree.member(place, name):
            module, owner = self.tree.module(m), (m, member.rpartition(".")[0])
            for d in module.definitions(member):
                if isinstance(d, source.FUNCTIONS):
                    found += self.annotated(module, d.returns)
                elif isinstance(d, ast.AnnAssign):
                    found += self.annotated(module, d.annotation)
                if isinstance(d, source.ASSIGNMENTS) and d.value is not None:
                    for method in self.holders(module, owner, d):
                        found += self.expression(module, owner, method, d.value)
        return tuple(dict.fromkeys(found))

    def holders(self, module, owner, statement):
        """The method of a class that holds a statement; None for the class itself."""
        if owner not in self.held:
            methods = [f for c in module.classes(owner[1]) for f in source.methods(c).values()]
            self.held[owner] = {s: f for f in methods for s in ast.walk(f) if isinstance(s, source.ASSIGNMENTS)}
        return [self.held[owner].get(statement)]

    def expression(self, module, owner, function, e, depth=0):
        again = functools.partial(self.expression, module, owner, function, depth=depth + 1)
        if depth > DEEPEST or e is None:
            return []
        if isinstance(e, ast.IfExp):
            return again(e.body) + again(e.orelse)
        if isinstance(e, ast.BoolOp):
            return [t for v in e.values for t in again(v)]
        if isinstance(e, (ast.Await, ast.Subscript, ast.Starred)):
            return again(e.value)
        if isinstance(e, ast.Call):
            return [t for p in self.callees(module, owner, function, e.func, depth + 1) for t in self.made(p)]
        if isinstance(e, ast.Attribute):
            return [t for o in again(e.value) for t in self.attribute(o, e.attr)] or self.globals(module, e)
        if isinstance(e, ast.Name):
            return self.local(module, owner, function, e.id)
        return []

    def local(self, module, owner, function, name):
        """The classes of a name in a function. If assignments refer to each other, the first does not count twice."""
        key = function or module.name, name
        if key not in self.known:
            self.known[key] = ()
            self.known[key] = tuple(dict.fromkeys(self.bound(module, owner, function, name)))
        return list(self.known[key])

    def bound(self, module, owner, function, name):
        arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs] if function else []
        for i, a in enumerate(arguments):
            if a.arg == name:
                return [owner] if i == 0 and owner and a.annotation is None else self.annotated(module, a.annotation)
        if function not in self.scopes:
            self.scopes[function] = source.bound(function.body) if function else {}
        found = []
        for s in self.scopes[function].get(name, []):
            if isinstance(s, ast.AnnAssign):
                found += self.annotated(module, s.annotation)
            elif isinstance(s, ast.Assign):
                found += self.expression(module, owner, function, s.value)
        return found or self.globals(module, ast.Name(name, ast.Load()))

    def globals(self, module, e):
        """Of a variable of a module."""
        found = []
        for m, name in self.tree.named(module, e):
            if name and "." not in name:
                for d in self.tree.module(m).definitions(name):
                    if isinstance(d, ast.AnnAssign):
                        found += self.annotated(self.tree.module(m), d.annotation)
                    elif isinstance(d, ast.Assign) and isinstance(d.value, ast.Call):
                        found += [t for p in self.tree.named(self.tree.module(m), d.value.func) for t in self.made(p)]
        return found

    def made(self, place):
        """The classes that a call of a class or a function returns. If functions refer to each other, the first does not count twice."""
        if self.tree.is_class(place):
            return [place]
        key = "made", place
        if key not in self.known:
            self.known[key] = ()
            self.known[key] = tuple(dict.fromkeys(self.returned(*place)))
        return list(self.known[key])

    def returned(self, m, name):
        """The classes in a function's annotation and in its return statements: an annotation may name only a base class."""
        module, owner = self.tree.module(m), (m, (name or "").rpartition(".")[0])
        found = []
        for d in module.definitions(name) if name else []:
            if isinstance(d, source.FUNCTIONS):
                found += self.annotated(module, d.returns)
                for s in ast.walk(d):
                    # mutant: class that a method returns
                    if isinstance(s, ast.Return):
                        found += self.expression(module, owner if owner[1] else None, d, s.value)
        return found

    def callees(self, module, owner, function, called, depth=0):
        """The functions, methods and classes that a call leads to."""
        if isinstance(called, ast.Attribute):
            if isinstance(called.value, ast.Call) and isinstance(called.value.func, ast.Name) and called.value.func.id == "super":
                return [p for base in self.tree.lineage(owner)[1:2] for p in self.tree.member(base, called.attr)] if owner else []
            of = self.expression(module, owner, function, called.value, depth + 1)
            found = [p for o in of for p in self.tree.member(o, called.attr)]
            if found:
                return found
        return list(self.tree.named(module, called))
