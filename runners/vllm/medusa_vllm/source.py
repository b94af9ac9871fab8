"""Hashes of Python definitions, without comments, documentation and places of lines.

In: the syntax tree of a module, the name of a definition in it: `function`, `Class` (decorators, bases and fields), `Class.method`,
`Class.attribute` (its assignments), `Class.*` (the names of its methods), `VARIABLE`. Out: a hash, the same under each version of Python.
Fails: never; a name that has no definition has no hash.
"""

import ast
import hashlib

FUNCTIONS = ast.FunctionDef, ast.AsyncFunctionDef
DOCUMENTED = *FUNCTIONS, ast.ClassDef, ast.Module
ASSIGNMENTS = ast.Assign, ast.AnnAssign, ast.AugAssign
UNSEEN = "ctx", "kind", "type_comment"  # fields of a syntax tree that do not change the program
METHODS = ".*"


def digest(tree, name):
    """The hash of all definitions of this name, in order: a module may hold one for each of several cases."""
    if name.endswith(METHODS):
        found = [sorted(methods(c)) for c in classes(tree, name[: -len(METHODS)])]
    else:
        found = [shape(d) if isinstance(d, ast.ClassDef) else d for d in definitions(tree, name)]
    if not found:
        return None
    return hashlib.sha256("".join(spelled(found)).encode()).hexdigest()[:16]


def definitions(tree, name):
    owner, _, member = name.rpartition(".")
    if not owner:
        return bound(tree.body).get(member, [])
    return [d for c in classes(tree, owner) for d in members(c).get(member, [])]


def classes(tree, name):
    return [d for d in definitions(tree, name) if isinstance(d, ast.ClassDef)]


def methods(c):
    return {s.name: s for s in statements(c.body) if isinstance(s, FUNCTIONS)}


def members(c):
    """By name, the definitions of a class, and the assignments of its methods to attributes of their object."""
    found = bound(c.body)
    for method in methods(c).values():
        arguments = [*method.args.posonlyargs, *method.args.args]
        for s in ast.walk(method) if arguments else ():
            for t in targets(s):
                if isinstance(t, ast.Attribute) and isinstance(t.value, ast.Name) and t.value.id == arguments[0].arg:
                    found.setdefault(t.attr, []).append(s)
    return found


def shape(c):
    """A class without its methods, each of which has a name of its own."""
    fields = [s for s in statements(c.body) if isinstance(s, ASSIGNMENTS)]
    return [c.decorator_list, c.bases, c.keywords, fields]


def statements(body):
    """The statements that run in the scope of a body."""
    for s in body:
        yield s
        if isinstance(s, (*FUNCTIONS, ast.ClassDef)):
            continue
        for inner in "body", "orelse", "finalbody":
            yield from statements(getattr(s, inner, []))
        for handler in getattr(s, "handlers", []):
            yield from statements(handler.body)


def bound(body):
    """By name, the definitions of a scope."""
    found = {}
    for s in statements(body):
        names = [s.name] if isinstance(s, (*FUNCTIONS, ast.ClassDef)) else [t.id for t in targets(s) if isinstance(t, ast.Name)]
        for name in names:
            found.setdefault(name, []).append(s)
    return found


def targets(s):
    if not isinstance(s, ASSIGNMENTS):
        return
    for t in s.targets if isinstance(s, ast.Assign) else [s.target]:
        yield from t.elts if isinstance(t, (ast.Tuple, ast.List)) else [t]


def spelled(thing):
    if isinstance(thing, ast.AST):
        yield type(thing).__name__ + "("
        for field in thing._fields:
            value = getattr(thing, field, None)
            # mutant: documentation of a definition
            if field == "body" and isinstance(thing, DOCUMENTED):
                value = undocumented(value)
            # Fields that newer versions of Python add are empty.
            if value is not None and value != [] and field not in UNSEEN:
                yield field + "="
                yield from spelled(value)
        yield ")"
    elif isinstance(thing, list):
        yield "["
        for item in thing:
            yield from spelled(item)
        yield "]"
    else:
        yield repr(thing) + ","


def undocumented(body):
    first = body[0] if body else None
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    return body[1:] if documented else body
