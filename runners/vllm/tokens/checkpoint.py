"""Writes small models with random weights, prompts for them, and the tokens that transformers generates on the CPU. Judges tokens of another engine.

    checkpoint.py FOLDER --make llama-float32 opt-bfloat16
    checkpoint.py FOLDER/opt-bfloat16 --judge TOKENS

In: models and their types; or a list of tokens for each prompt. Out: FOLDER/MODEL-TYPE with config.json, weights, a tokenizer and expected.json: prompts, greedy
tokens in single precision, and of each token by how much its logit exceeds the second; of a Llama also a draft model and adapters. Or a line of JSON: how many
tokens do not have the best logit, how far the furthest is from it in parts of BOUND, and how many tokens of the vocabulary are within BOUND at a step. Fails: the
tokens are too few different ones to show a mistake; or a token's logit is further from the best than BOUND allows.
"""

import argparse
import itertools
import json
import os
import random

import adapters
import draft
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import AutoModelForCausalLM, DeepseekV2Config, Gemma2Config, LlamaConfig, MixtralConfig, OPTConfig, PreTrainedTokenizerFast, Qwen3Config

EXPERTS, LOUD = 4, 1.0
SHAPE = dict(hidden_size=128, num_hidden_layers=2, num_attention_heads=4, vocab_size=512, max_position_embeddings=512)
GROUPED = dict(SHAPE, intermediate_size=256, num_key_value_heads=2, head_dim=32, tie_word_embeddings=False, bos_token_id=1, eos_token_id=2)
CONFIGURATIONS = {
    "llama": lambda: LlamaConfig(**GROUPED),
    "qwen3": lambda: Qwen3Config(**GROUPED),
    # Half of its layers see the last 32 tokens only; prompts with their answers are longer.
    "gemma2": lambda: Gemma2Config(**GROUPED | {"tie_word_embeddings": True}, query_pre_attn_scalar=32, sliding_window=32),
    "mixtral": lambda: MixtralConfig(**GROUPED, num_local_experts=EXPERTS, num_experts_per_tok=2, sliding_window=None),
    # Its keys and values are one latent vector in the cache. No layer has experts.
    "deepseek": lambda: DeepseekV2Config(
        **SHAPE | {"num_key_value_heads": 4, "intermediate_size": 256}, q_lora_rank=None, kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128,
        first_k_dense_replace=2, n_routed_experts=4, num_experts_per_tok=2, tie_word_embeddings=False, bos_token_id=1, eos_token_id=2,
    ),
    "opt": lambda: OPTConfig(**SHAPE, ffn_dim=256, word_embed_proj_dim=128, bos_token_id=1, eos_token_id=2, pad_token_id=0),
}
PROMPTS, LENGTHS, TOKENS = 16, (1, 24), (64, 88)
DISTINCT = 32
EAGER = {"attn_implementation": "eager"}  # transformers' other form leaves soft caps out (5.20.2)
# In BF16, a number has eight binary digits. Of two engines that round at other places, one may choose a token whose logit is not quite the best in
# exact arithmetic: closer to it than 16 roundings of the largest logit of the step.
BOUND = 16 * 2**-8


def decide(made):
    """The first numbers of a token's embedding, one an expert, say which two experts it takes, and no layer changes them. With random weights alone, the
    second and the third are so close now and then that a rounding in BF16 chooses another expert, and with it other results."""
    pairs = list(itertools.combinations(range(EXPERTS), 2))
    table = made.get_input_embeddings().weight
    table[:, :EXPERTS] = 0
    for token in range(len(table)):
        table[token, list(pairs[token % len(pairs)])] = LOUD
    for name, parameter in made.named_parameters():
        if name.endswith("mlp.gate.weight"):
            parameter.copy_(torch.eye(*parameter.shape))
        elif name.endswith("o_proj.weight"):
            parameter[:EXPERTS] = 0
        elif name.endswith("experts.down_proj"):
            parameter[:, :EXPERTS] = 0
        elif name.endswith("post_attention_layernorm.weight"):
            parameter[:EXPERTS] = 1


def model(kind, seed):
    """Weights that are large enough to make the tokens depend on all of the prompt."""
    torch.manual_seed(seed)
    made = AutoModelForCausalLM.from_config(CONFIGURATIONS[kind](), **EAGER).float().eval()
    for name, parameter in made.named_parameters():
        if parameter.dim() >= 2 or name.endswith("bias"):
            parameter.normal_(0, 0.12)
        else:
            parameter.uniform_(0.5, 1.5)
    return made


def prompts(seed):
    """Of different lengths, with different numbers of tokens to generate, so that batches shrink."""
    rng = random.Random(seed)
    return [
        {"prompt": [rng.randrange(3, SHAPE["vocab_size"]) for _ in range(rng.randint(*LENGTHS))], "count": rng.randint(*TOKENS)}
        for _ in range(PROMPTS)
    ]


def generate(model, prompt, count):
    """Greedy tokens, and the margin of each."""
    tokens, margins, cache, given = [], [], None, torch.tensor([prompt])
    for _ in range(count):
        out = model(given, past_key_values=cache, use_cache=True)
        best = out.logits[0, -1].float().topk(2)
        tokens.append(int(best.indices[0]))
        margins.append(float(best.values[0] - best.values[1]))
        cache, given = out.past_key_values, torch.tensor([tokens[-1:]])
    return tokens, margins


def routed(model):
    return {"output_router_logits": True} if hasattr(model.config, "output_router_logits") else {}


def decision(logits, chosen):
    """How far the last expert that is chosen is ahead of the first that is not, at the closest choice, in parts of BOUND."""
    best = logits.topk(chosen + 1).values
    return float(((best[:, -2] - best[:, -1]) / (BOUND * logits.abs().max(1).values)).min())


def judge(folder, requests, answers):
    """Of each token the logit in single precision is held against the best one, after the same tokens."""
    with open(os.path.join(folder, requests), encoding="utf-8") as f:
        cases = json.load(f)
    exact = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, **EAGER).eval()
    steps, others, close, furthest, clear = 0, 0, 0, 0.0, []
    for case, answer in zip(cases, answers, strict=True):
        with adapters.applied(exact, folder, case.get("adapter")):
            out = exact(torch.tensor([case["prompt"] + answer]), **routed(exact))
        logits = out.logits[0, len(case["prompt"]) - 1 : -1]
        best, allowed = logits.max(1).values, BOUND * logits.abs().max(1).values
        short = best - logits.gather(1, torch.tensor(answer)[:, None])[:, 0]
        steps, others, furthest = steps + len(answer), others + int((short > 0).sum()), max(furthest, float((short / allowed).max()))
        clear += [decision(layer, exact.config.num_experts_per_tok) for layer in getattr(out, "router_logits", None) or ()]
        close += int((best[:, None] - logits <= allowed[:, None]).sum())
    print(json.dumps({"others": others, "furthest": round(furthest, 3), "candidates": round(close / steps, 2)} | ({"clear": round(min(clear), 2)} if clear else {})))
    if clear and min(clear) < 1:
        raise SystemExit(f"judge {folder}: a choice of experts is {min(clear):.2f} of the bound from another one, so roundings may make it")
    if furthest > 1:
        raise SystemExit(f"judge {folder}: a token's logit is {furthest:.2f} times as far from the best as it may be")


def tokenizer():
    """Each token's word is its number. Other words have one that the model does not know."""
    size = SHAPE["vocab_size"]
    made = Tokenizer(WordLevel({**{str(i): i for i in range(size)}, "?": size}, unk_token="?"))
    made.pre_tokenizer = Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=made, unk_token="?")


def make(folder, kind, dtype, seed, bare):
    """The weights have the type; the answers are computed from them in single precision."""
    made = model(kind, seed)
    if kind == "mixtral" and dtype == "bfloat16":
        decide(made)
    made = made.to(getattr(torch, dtype))
    made.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    made, cases = made.float(), prompts(seed)
    for case in cases:
        case["tokens"], case["margins"] = generate(made, case["prompt"], case["count"])
    distinct = len({t for case in cases for t in case["tokens"]})
    least = min(m for case in cases for m in case["margins"])
    print(f"checkpoint: {kind} {dtype}: {sum(case['count'] for case in cases)} tokens, {distinct} different, smallest margin {least:.2g}", flush=True)
    if distinct < DISTINCT:
        raise SystemExit(f"make model {folder}: {distinct} different tokens, at least {DISTINCT} are needed (another --seed)")
    if kind == "llama" and not bare:
        draft.write(made, folder, cases, getattr(torch, dtype))
        adapters.write(made.to(getattr(torch, dtype)), folder, cases, generate)
    with open(os.path.join(folder, "expected.json"), "w", encoding="utf-8") as f:
        json.dump(cases, f)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("folder")
    p.add_argument("--make", nargs="+", metavar="MODEL-TYPE", help=f"models: {', '.join(CONFIGURATIONS)}")
    p.add_argument("--seed", type=int, default=4)
    p.add_argument("--bare", action="store_true", help="without a draft model and adapters")
    p.add_argument("--judge", help="file with a list of tokens for each prompt of FOLDER")
    p.add_argument("--requests", default="expected.json", help="file of FOLDER with these prompts")
    a = p.parse_args()
    if a.judge:
        with open(a.judge, encoding="utf-8") as f:
            judge(a.folder, a.requests, json.load(f))
    for name in a.make or ():
        make(os.path.join(a.folder, name), *name.split("-"), a.seed, a.bare)


if __name__ == "__main__":
    with torch.inference_mode():
        main()
