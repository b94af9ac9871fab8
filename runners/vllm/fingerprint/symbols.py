"""The definitions of vLLM that the plug-in depends on.

In: the plug-in's uses, a Tree. Out: by `FILE:NAME`, hashes of the definitions that the plug-in uses itself, and of those that they call
within the package. Fails: as the tree does.

Objects have no types in the plug-in. So an attribute counts for each class that can be reached: from the imported classes, over
attributes that the plug-in uses. That finds more than the plug-in needs, but it misses no method if a variable has another name.
"""

import ast
import dataclasses

from medusa_vllm import source
from types_of import Types


@dataclasses.dataclass
class Symbols:
    used: dict  # hashes by FILE:NAME
    called: dict
    callers: dict  # the first caller of each called definition
    unresolved: list  # imports without a definition


class Closure:
    def __init__(self, tree, uses):
        self.tree, self.uses, self.types = tree, uses, Types(tree)
        self.used, self.reached, self.unresolved = {}, [], []

    def collect(self):
        for module, name in sorted(self.uses.imported, key=str):
            places = self.tree.resolve(module, name) if name else []
            for place in places:
                self.use(place)
            if name and not places:
                self.unresolved.append(f"{module}.{name}")
        for (module, name), methods in sorted(self.uses.subclassed.items()):
            for place in self.tree.resolve(module, name):
                self.subclass(place, methods)
        for place in self.reached:  # read may append to it
            for name in sorted(self.uses.attributes):
                self.read(place, name)

    def use(self, place):
        """A function, a variable, or a class with its fields and its constructor."""
        module, name = place
        if name is None:
            return
        self.used[place] = None
        if self.tree.is_class(place):
            self.reach(place)
            for constructor in "__init__", "__new__", "__post_init__":
                self.used |= dict.fromkeys(self.tree.member(place, constructor))
        elif "." not in name:
            found = self.tree.module(module)
            for t in [*self.types.globals(found, ast.Name(name, ast.Load())), *self.types.made(place)]:
                self.reach(t)

    def subclass(self, place, methods):
        """The whole class counts: if a new release adds or changes a method, the subclass may have to follow."""
        module, name = place
        self.used[(module, name + source.METHODS)] = None
        for c in self.tree.module(module).classes(name):
            self.used |= {(module, f"{name}.{m}"): None for m in source.methods(c)}
        for method in methods:
            self.used |= dict.fromkeys(self.tree.member(place, method))

    def reach(self, place):
        if place not in self.reached:
            self.reached.append(place)

    def read(self, place, name):
        for found in self.tree.member(place, name):
            self.used[found] = None
            for t in self.types.attribute(place, name):
                self.reach(t)

    def calls(self):
        """The first caller of each definition."""
        found = {}
        for caller in list(self.used):
            for callee in self.of(caller):
                constructor = self.tree.member(callee, "__init__") if self.tree.is_class(callee) else ()
                for place in (callee, *constructor):
                    if place[1] and place not in self.used:
                        found.setdefault(place, caller)
        return found

    def of(self, place):
        module, name = self.tree.module(place[0]), place[1]
        owner = (place[0], name.rpartition(".")[0]) if "." in name else None
        for d in module.definitions(name):
            for call in ast.walk(d) if isinstance(d, source.FUNCTIONS) else ():
                if isinstance(call, ast.Call):
                    # mutant: callees of what the plug-in uses
                    yield from self.types.callees(module, owner, d, call.func)


def collect(tree, uses):
    c = Closure(tree, uses)
    c.collect()
    calls = c.calls()

    def spelled(place):
        return f"{tree.module(place[0]).file.partition('/')[2]}:{place[1]}"

    def hashes(places):
        found = {spelled(p): source.digest(tree.module(p[0]).tree, p[1]) for p in places}
        return {name: found[name] for name in sorted(found) if found[name]}

    callers = {spelled(callee): spelled(caller) for callee, caller in calls.items()}
    return Symbols(hashes(c.used), hashes(calls), callers, c.unresolved)
