"""vLLM's settings and variables as factors, each under its name, so that a difference has one.

In: vLLM's configuration, the functions by which it reads its environment. Out: the values that count and are not vLLM's defaults, as strings by name, and a digest
of the defaults. Fails: as vLLM's functions do with a variable that they refuse.
"""

import dataclasses
import enum
import json
import os
import re
from unittest import mock

from . import classes, contents

ENV, SETTING = "env.", "setting."
SECRET = re.compile(r"KEY|TOKEN(?![A-Z])|SECRET|PASSWORD|PASSWD", re.IGNORECASE)
HIDDEN = "hidden, "
CONFIGURATION = "a configuration"


def variables(getters, rows=None):
    """getters: vLLM's functions, by variable. Returns the factors, and the defaults."""
    rows = classes.table(classes.VARIABLES) if rows is None else rows
    below = [name for name, row in rows.items() if row.releases == classes.NONE]
    names = [name for name in (*getters, *below) if classes.counts(rows, name)]

    def values():
        return {name: shown(name, written(getters[name]()) if name in getters else os.environ.get(name)) for name in names}

    found, plain = values(), {name: value for name, value in os.environ.items() if name not in getters and name not in names}
    # What vLLM reads from an environment without its variables is its default. Some defaults depend on other variables.
    with mock.patch.object(os, "environ", plain):
        defaults = values()
    # mutant: variable with another value than its default
    return {ENV + name: value for name, value in found.items() if value != defaults[name]}, defaults


def written(value):
    """A value as a user would set the variable."""
    if isinstance(value, bool):
        return int(value)
    return ",".join(value) if isinstance(value, list) and all(isinstance(v, str) for v in value) else value


def settings(config, rows=None):
    """The same of a configuration and those that it holds."""
    rows, found, defaults = classes.table(classes.SETTINGS) if rows is None else rows, {}, {}

    def walk(at, path, defaults):
        owner = type(at).__name__
        for field in dataclasses.fields(at):
            name, value = f"{owner}.{field.name}", getattr(at, field.name, None)
            if name in contents.FILES:
                value = contents.FILES[name](value)
            # mutant: setting that belongs to the deployment
            elif not classes.counts(rows, name):
                continue
            here = f"{path}{field.name}"
            factory = factory_of(field)
            if described(value):
                # The factory of a part that is there is not called: some of vLLM's write to the log.
                defaults[name] = CONFIGURATION if factory else shown(field.name, default(field))
                # mutant: part of a configuration that is there
                if not factory:
                    found[here] = type(value).__name__
                walk(value, here + ".", defaults if factory else {})
                continue
            given = default(field)
            defaults[name] = CONFIGURATION if described(given) else shown(field.name, given)
            # mutant: setting with another value than its default
            if shown(field.name, value) != defaults[name]:
                found[here] = shown(field.name, value)

    walk(config, SETTING, defaults)
    return found, defaults


def described(value):
    """Whether a value is one of vLLM's configurations, whose fields count one by one."""
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def factory_of(field):
    """vLLM's dataclasses are pydantic's: a default may be an object with the default, or its factory, in it."""
    for holder in field, field.default:
        if callable(getattr(holder, "default_factory", None)):
            return holder.default_factory
    return None


def default(field):
    if factory := factory_of(field):
        try:
            return factory()
        except Exception:  # what cannot be made without arguments is no default of its own
            return None
    value = field.default.default if hasattr(field.default, "default_factory") else field.default
    return None if value is dataclasses.MISSING else value


def shown(name, value):
    """A secret is not written to an artifact, but another one differs."""
    # mutant: secrets in a factor
    if isinstance(value, str) and value and SECRET.search(name):
        return HIDDEN + contents.digest(value)[7:15]
    return text(value)


def text(value):
    if isinstance(value, enum.Enum):
        return value.name
    if value is None or isinstance(value, str | bool | int | float):
        return str(value)
    if isinstance(value, dict):
        return json.dumps({str(k): shown(str(k), v) for k, v in value.items()}, sort_keys=True)
    if isinstance(value, set | frozenset):
        return text(sorted(map(text, value)))
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(text, value)) + "]"
    if isinstance(value, type):
        return value.__qualname__
    uuid = getattr(value, "uuid", None)
    if callable(uuid):
        return str(uuid())
    # The text of an object with an address differs from process to process.
    return str(value) if " at 0x" not in str(value) else type(value).__qualname__
