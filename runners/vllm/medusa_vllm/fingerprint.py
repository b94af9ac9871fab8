"""Whether the installed vLLM is, as far as the plug-in is concerned, a release that it was tested with.

In: the folder of the installed package; a file fingerprint-RELEASE.json beside this one for each supported release, which `make vllm-fingerprint`
writes. Out: the name of a definition that differs. Fails: nothing; a file that cannot be read differs.

A file holds hashes of the sources of what the plug-in uses of vLLM, and of what that calls (runners/vllm/fingerprint). Sources
that are the same to the byte are told by one hash each; only others are parsed.
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
    """What the package in a folder has otherwise than the release, as FILE:NAME, or None. What the plug-in uses itself goes first."""
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
    """The hash of a definition; the tree of its file takes the place of the file's content."""
    try:
        if isinstance(contents[file], bytes):
            contents[file] = ast.parse(contents[file])
    except (SyntaxError, ValueError):
        contents[file] = None
    return contents[file] and source.digest(contents[file], name)


def read(file):
    """In few system calls: a start reads some 150 files."""
    try:
        opened = os.open(file, os.O_RDONLY)
    except OSError:
        return None
    try:
        return os.read(opened, os.fstat(opened).st_size)
    finally:
        os.close(opened)
