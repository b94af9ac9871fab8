"""Which of the repository's files the outcome of a case depends on.

In: the root of the repository, vLLM's release, and the folders of the case's model and of its draft model. Out: a key that changes if one of these files changes. Fails: if git
or go does. Each file counts that is not known to be needless, so a new folder does.
"""

import functools
import hashlib
import os
import subprocess

# The packages that a materialized and a restored start run.
GO = "./materialize", "./restore/supervisor", "./cmd/libmedusa"
COMMANDS = "cmd/medusa"  # without what its other commands import
TESTS, MODELS, PLUGIN = "runners/vllm/test/", "runners/vllm/test/models/", "runners/vllm/medusa_vllm/"
NEEDED = {TESTS + name for name in ("run.py", "engine.py", "held.py", "serving.py", "captures.py", "noops.py", "served/schedules.py", "state.py", "compilations.py", "changes.txt", "architectures.py", "configurations.py")} | {
    "runners/torch/test/" + name for name in ("compare.py", "engine_run.py", "holes.py")
}
NEEDLESS = (
    ".ci/", "docs/", "test/", "interpose/test/", "serving/", "runners/example/", "runners/pool/", "runners/reference/", "runners/torch/", "runners/vllm/fingerprint/",
    "runners/vllm/gpu/", "runners/vllm/tokens/", TESTS, "scripts/", "simgpu/conformance/", "simgpu/test/",
)  # fmt: skip
THERE = "test/calllog/", "runners/torch/python/", "runners/torch/rules.mk"
OF_A_RELEASE = "runners/vllm/requirements-", PLUGIN + "fingerprint-"
DOCUMENTS = ".md", ".svg", ".png", "_test.go", "LICENSE", ".gitignore"


def counts(name, release, models, packages):
    """packages: whether a folder of Go is run, by name."""
    if name.startswith(MODELS):
        return name.startswith(tuple(f"{MODELS}{model}/" for model in models))
    for prefix in OF_A_RELEASE:
        if name.startswith(prefix):
            return name.startswith(prefix + release + ".")
    # mutant: files that a case needs
    if name in NEEDED:
        return True
    if name.endswith(DOCUMENTS) or (name.startswith(NEEDLESS) and not name.startswith(THERE)):
        return False
    folder = os.path.dirname(name)
    while folder and folder not in packages:  # files that a package embeds lie below it
        folder = os.path.dirname(folder)
    # mutant: packages that a start does not run
    return packages.get(folder, True)


def lines(root, *command):
    env = os.environ | {"CGO_ENABLED": "1"}  # for cmd/libmedusa
    return subprocess.run(command, cwd=root, env=env, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()


@functools.cache
def files(root):
    """The names of all files, and whether each folder with Go is one of a package that a start runs."""
    names = [name for name in lines(root, "git", "ls-files", "-co", "--exclude-standard") if os.path.isfile(os.path.join(root, name))]
    deps = lines(root, "go", "list", "-deps", "-f", "{{if .Module}}{{if .Module.Main}}{{.Dir}}{{end}}{{end}}", *GO)
    run = {os.path.relpath(folder, os.path.realpath(root)) for folder in deps if folder} | {COMMANDS}
    return sorted(names), {folder: folder in run for folder in {os.path.dirname(name) for name in names if name.endswith(".go")}}


@functools.cache
def digest(path):
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def key(root, release, *models):
    names, packages = files(root)
    h = hashlib.sha256()
    for name in names:
        if counts(name, release, models, packages):
            h.update(f"{name} {digest(os.path.join(root, name))}\n".encode())
    return h.hexdigest()[:16]
