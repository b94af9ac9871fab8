"""Compares the parts of the installed vLLM that the plug-in uses with a release that it was tested with.

In: the folder of the installed package; a file fingerprint-RELEASE.json beside this one for each supported release, which `make vllm-fingerprint`
writes. Out: the name of a definition that differs. Fails: never; a file of vLLM that cannot be read differs.

A fingerprint file holds hashes of the definitions of vLLM that the plug-in uses, and of the definitions that these call
(runners/vllm/fingerprint). It also holds one hash for each source file: only files whose hash differs are parsed.
"""

import ast
import functools
import hashlib
import json
import os

from . import source

HERE = os.path.dirname(os.path.abspath(__file__))


def path(release):
    return os.path.join(HERE, f"fingerprint-{release}.json")


def hashed(content):
    return hashlib.sha256(content).hexdigest()[:16]


@functools.cache
def difference(release, folder):
    """A definition in which the package in a folder differs from the release, as FILE:NAME, or None. Those that the plug-in uses go first."""
    with open(path(release), encoding="utf-8") as f:
        held = json.load(f)
    changed = {}
    for name, known in held["files"].items():
        content = read(os.path.join(folder, name))
        # mutant: file of vLLM that differs
        if content is None or hashed(content) != known:
            changed[name] = content
    for symbols in held["used"], held["called"]:
        for symbol, known in symbols.items():
            file, name = symbol.split(":")
            if file in changed and found(changed, file, name) != known:
                return symbol
    return None


def found(contents, file, name):
    """The hash of a definition. Replaces the file's content in contents by its syntax tree."""
    try:
        if isinstance(contents[file], bytes):
            contents[file] = ast.parse(contents[file])
    except (SyntaxError, ValueError):
        contents[file] = None
    return contents[file] and source.digest(contents[file], name)


def read(file):
    """The content of a file, or None. It makes few system calls, because a start reads some 150 files."""
    try:
        opened = os.open(file, os.O_RDONLY)
    except OSError:
        return None
    try:
        return os.read(opened, os.fstat(opened).st_size)
    finally:
        os.close(opened)
