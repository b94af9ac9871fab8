"""Variables and settings that hold a path count by what it leads to.

In: the environment of the process. Out: factors, strings by name; one that leads nowhere is left out. Fails: as reading does.
"""

import hashlib
import json
import os
import re
import shutil
from importlib import metadata

GROUPS = "vllm.general_plugins", "vllm.platform_plugins"  # those whose code runs where graphs are captured
OURS = "medusa-graphs", "vllm"
TOOLKIT = "/usr/local/cuda"


def digest(text):
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def of_file(path):
    if path is None:
        return None
    with open(path, "rb") as f:
        return "sha256:" + hashlib.sha256(f.read()).hexdigest()


FILES = {"MultiModalConfig.mm_encoder_fp8_scale_path": of_file}


def factors(environment):
    found = {"engine.plugins": plugins(environment.get("VLLM_PLUGINS")), "cuda.toolkit": toolkit(environment), "engine.tuned_configs": tuned(environment.get("VLLM_TUNED_CONFIG_FOLDER"))}
    return {name: value for name, value in found.items() if value}


def plugins(allowed, points=None):
    """The plug-ins that vLLM loads, by name and version, besides its own and Medusa's. allowed: VLLM_PLUGINS."""
    names = None if allowed is None else allowed.split(",")
    if points is None:
        installed = metadata.entry_points()
        points = [p for group in GROUPS for p in installed.select(group=group)]
    # mutant: plug-ins that are left out
    loaded = {(p.name, p.dist.name, p.dist.version) for p in points if names is None or p.name in names}
    return ", ".join(sorted(f"{name} ({dist} {version})" for name, dist, version in loaded if re.sub(r"[-_.]+", "-", dist).lower() not in OURS))


def toolkit(environment):
    """The version of the toolkit that torch and vLLM would compile with: CUDA_HOME, the compiler's folder, or the usual one."""
    compiler = shutil.which("nvcc", path=environment.get("PATH"))
    folder = environment.get("CUDA_HOME") or environment.get("CUDA_PATH") or (compiler and os.path.dirname(os.path.dirname(compiler))) or TOOLKIT
    try:
        with open(os.path.join(folder, "version.json"), encoding="utf-8") as f:
            return json.load(f)["cuda"]["version"]
    except (OSError, ValueError, KeyError, TypeError):
        return header(os.path.join(folder, "include", "cuda.h"))


def header(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            found = re.search(r"#define\s+CUDA_VERSION\s+(\d+)", f.read())
    except OSError:
        return ""
    return f"{int(found[1]) // 1000}.{int(found[1]) % 1000 // 10}" if found else ""


def tuned(folder):
    """The tuned settings in a folder, by name and contents. vLLM takes other paths if there is a folder, even an empty one."""
    if not folder:
        return ""
    files = sorted(f for f in os.listdir(folder) if f.endswith(".json")) if os.path.isdir(folder) else []
    return digest("\n".join(f"{f} {of_file(os.path.join(folder, f))}" for f in files))
