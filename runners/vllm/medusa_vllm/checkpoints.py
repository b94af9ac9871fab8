"""What the identity says of a model and its checkpoint.

In: vLLM's configuration, and what the session wants to know of the weights. Out: strings. Fails: as reading the checkpoint's files does; OSError if they
lie in no folder of this machine.

A hub's name, a folder and a mounted volume of one configuration are one model: names, sizes and revisions do not count. Contents count if graphs hold
a value made from them.
"""

import hashlib
import json
import os
from concurrent import futures

FILES = ".safetensors", ".bin", ".pt", ".gguf"
# Fields of a configuration that decide nothing about graphs: where the checkpoint came from, who wrote it, the type of its files (vLLM's own type
# counts), and tokens that end a text.
ELSEWHERE = "_name_or_path", "transformers_version", "torch_dtype", "dtype", "use_cache", "bos_token_id", "eos_token_id", "pad_token_id"
PART = 1 << 20


def form(config):
    """A model's configuration without the fields in which checkpoints of one model differ. config: of transformers."""
    return json.dumps(pruned(json.loads(config.to_json_string())), sort_keys=True)


def pruned(fields):
    """Parts of a model have configurations of their own. Other parts, such as that of quantization, may mean another thing by the same names."""
    # mutant: fields that checkpoints of one model differ in, in vLLM
    return {k: pruned(v) if isinstance(v, dict) and "model_type" in v else v for k, v in fields.items() if k not in ELSEWHERE}


def contents(folders):
    """A digest of all bytes of the weights' files, whatever their names are."""
    paths = [os.path.join(folder, f) for folder in folders for f in sorted(os.listdir(folder)) if f.endswith(FILES)]
    if not paths:
        raise OSError(f"read weights in {', '.join(folders)}: no file ends with {', '.join(FILES)}")
    with futures.ThreadPoolExecutor() as pool:  # hashing and reading leave Python to other threads
        return "sha256:" + hashlib.sha256(b"".join(pool.map(whole, paths))).hexdigest()


def whole(path):
    total = hashlib.sha256()
    with open(path, "rb", buffering=0) as f:
        # mutant: all bytes of a checkpoint
        while part := f.read(PART):
            total.update(part)
    return total.digest()
