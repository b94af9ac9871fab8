"""The cases of make test-tokens.

In: the value of CASES. Out: cases, each four words: the model, its type, vLLM's model runner, and its mode of graphs. A fifth
word may name other work: "traffic", requests that come and go; "served", `vllm serve` streams the answers; "elastic", the KV cache has
memory for a part of its blocks, and is resized (elastic_case.py); "breakable", vLLM's breakable graphs; "checkpoints", several of one configuration (checkpoints_case.py); or a feature. Two cases are without vLLM. Fails: ValueError for an
unknown word, and for a case that is known not to work.
"""

import itertools

import extras

SETTINGS = {
    "model": ("llama", "qwen3", "opt", "gemma2", "mixtral"),
    "type": ("float32", "bfloat16"),
    "runner": ("V1", "V2"),
    "graphs": ("FULL_DECODE_ONLY", "FULL_AND_PIECEWISE", "PIECEWISE"),
}
# The engine of runners/torch, compiled by Inductor (torch_case.py), and its batch sizes.
TORCH, BATCHES = "llama float32 torch COMPILED", (2, 16)
# Tensor parallel ranks: vLLM's and the torch engine's. The model has two heads of keys and values: vLLM gives each of four ranks a copy of one.
TORCH_RANKS = f"{TORCH} ranks2"
RANKED = ("llama float32 V2 FULL_DECODE_ONLY ranks2", TORCH_RANKS)
TRAFFIC, SERVED, ELASTIC, BREAKABLE, LOADERS, CHECKPOINTS = OTHERWISE = "traffic", "served", "elastic", "breakable", "loaders", "checkpoints"
# Latent attention (MLA), whose kernels take no single precision. Pieces also compute prompts in parts, which latent.py does not.
DEEPSEEK = "deepseek"
LATENT = [f"{DEEPSEEK} bfloat16 {runner} FULL_DECODE_ONLY" for runner in SETTINGS["runner"]]
# A Llama with drafts, adapters, sleep (extras.py).
FEATURES = tuple(f"llama {how}" for how in ("float32 V1 FULL_DECODE_ONLY ngram", "float32 V2 FULL_DECODE_ONLY eagle", "bfloat16 V2 FULL_DECODE_ONLY lora", "float32 V2 FULL_DECODE_ONLY sleep"))
FEATURES += (LATENT[1], f"llama float32 V2 PIECEWISE {BREAKABLE}")
# Every pair of two settings is in one of these, but for the pairs of a model and a mode: there are more of them than cases.
DEFAULT = (
    "llama float32 V1 FULL_DECODE_ONLY",
    "llama float32 V2 FULL_DECODE_ONLY",
    "llama float32 V2 FULL_AND_PIECEWISE",
    "llama bfloat16 V2 PIECEWISE",
    "qwen3 float32 V2 FULL_DECODE_ONLY",
    "qwen3 bfloat16 V1 FULL_AND_PIECEWISE",
    "opt float32 V1 PIECEWISE",
    "opt bfloat16 V2 FULL_DECODE_ONLY",
    "gemma2 float32 V2 PIECEWISE",
    "gemma2 bfloat16 V1 FULL_AND_PIECEWISE",
    "mixtral float32 V1 FULL_AND_PIECEWISE",
    "mixtral bfloat16 V2 FULL_AND_PIECEWISE",
)
# The same engine at other work, after these.
WORK = ("llama float32 V2 FULL_DECODE_ONLY served", "llama float32 V2 FULL_AND_PIECEWISE traffic", f"llama float32 V2 FULL_DECODE_ONLY {CHECKPOINTS}")
# The artifacts of these bundle the compilers' output, and a start in another folder does not compile.
BUNDLED = ("qwen3 float32 V2 FULL_DECODE_ONLY", "mixtral float32 V1 FULL_AND_PIECEWISE", TORCH)
ALL = [" ".join(c) for c in itertools.product(*SETTINGS.values())]
ABSENT = {}  # cases that do not work, with the reason


def every():
    return [case for case in ALL if case not in ABSENT]


def otherwise():
    featured = [f"{case} {how}" for case in every() if case.startswith("llama ") for how in extras.ALL]
    return [f"{case} {how}" for case in every() for how in OTHERWISE] + featured + LATENT


def select(text):
    """None: the default ones, other work and torch's; "all"; or names separated by commas."""
    if not text:
        return [*DEFAULT, *WORK, *FEATURES, TORCH, *RANKED]
    if text == "all":
        return [*every(), TORCH]
    chosen = [" ".join(name.split()) for name in text.split(",")]
    for name in chosen:
        if name in ABSENT:
            raise ValueError(f"case {name!r}: {ABSENT[name]}")
        if name not in [*every(), *otherwise(), TORCH, TORCH_RANKS]:
            raise ValueError(f"case {name!r}: want {', '.join('|'.join(v) for v in SETTINGS.values())}, and perhaps {'|'.join(OTHERWISE)}, of a Llama {'|'.join(extras.ALL)}; or {TORCH!r} or {TORCH_RANKS!r}; or {' or '.join(map(repr, LATENT))}")
    return chosen


def pairs(cases):
    """The pairs of settings that cases have, but for those of a model and a mode. Only cases of four words have all steps."""
    words = [list(zip(SETTINGS, words)) for words in map(str.split, cases) if len(words) == len(SETTINGS)]
    found = {pair for case in words for pair in itertools.combinations(case, 2)}
    return {pair for pair in found if {name for name, _ in pair} != {"model", "graphs"}}
