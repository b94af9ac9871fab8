#!/usr/bin/env python3
"""Trains the small Llama checkpoint that ships with the reference engine.

In:  a text file made by text.sh.  Out: a Hugging Face checkpoint directory in F32, and beside it one in F16.
Needs torch, transformers, tokenizers and safetensors (see README.md); takes a few minutes on two cores.
"""
import argparse
import json
import pathlib
import time

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM

END = "<|endoftext|>"
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "intermediate_size": 176,
    "vocab_size": 512,
    "max_position_embeddings": 256,
    "rope_theta": 10000.0,
    "rms_norm_eps": 1e-5,
    "hidden_act": "silu",
    "attention_bias": False,
    "mlp_bias": False,
    "tie_word_embeddings": True,
    "bos_token_id": 0,
    "eos_token_id": 0,
}


def train_tokenizer(text: str, size: int) -> Tokenizer:
    """Byte-level BPE: every byte is a token, so any prompt can be encoded."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        text.splitlines(keepends=True),
        trainers.BpeTrainer(
            vocab_size=size,
            special_tokens=[END],
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        ),
    )
    return tokenizer


def encode(tokenizer: Tokenizer, texts: list[str]) -> torch.Tensor:
    """One row of tokens; each text begins with the token that ends the one before it."""
    return torch.tensor([i for text in texts for i in [0, *tokenizer.encode(text).ids]])


def train(
    config: LlamaConfig, tokens: torch.Tensor, steps: int, batch: int, length: int, rate: float
) -> tuple[LlamaForCausalLM, float]:
    """The model, and its mean loss on the last fiftieth of the tokens, which it has not seen."""
    model = LlamaForCausalLM(config)
    held_out = len(tokens) // 50
    tokens, validation = tokens[:-held_out], tokens[-held_out:]
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.95), weight_decay=0.01)
    warm_up = steps // 20
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda i: min((i + 1) / warm_up, max(0.02, (steps - i) / (steps - warm_up)))
    )
    start = time.time()
    for step in range(steps):
        at = torch.randint(len(tokens) - length, (batch,))
        rows = torch.stack([tokens[i : i + length] for i in at])
        loss = model(input_ids=rows, labels=rows).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 200 == 0 or step == steps - 1:
            print(f"step {step} loss {loss.item():.3f} {time.time() - start:.0f} s", flush=True)
    with torch.no_grad():
        rows = validation[: len(validation) // length * length].view(-1, length)[:200]
        loss = model(input_ids=rows, labels=rows).loss.item()
    return model, loss


def save(model: LlamaForCausalLM, tokenizer: Tokenizer, out: pathlib.Path, dtype: torch.dtype) -> None:
    """Writes the layout of older releases too (rope_theta and torch_dtype at the top), which all readers accept."""
    out.mkdir(parents=True, exist_ok=True)
    name = str(dtype).removeprefix("torch.")
    (out / "config.json").write_text(json.dumps({**CONFIG, "torch_dtype": name}, indent=2) + "\n")
    weights = {
        key: value.detach().to(dtype).contiguous()
        for key, value in model.state_dict().items()
        if key != "lm_head.weight"  # tied to the embedding
    }
    save_file(weights, out / "model.safetensors", metadata={"format": "pt"})
    tokenizer.save(str(out / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": END,
        "eos_token": END,
        "add_bos_token": False,
        "clean_up_tokenization_spaces": False,
        "model_max_length": CONFIG["max_position_embeddings"],
    }
    (out / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path, help="directory for F32; F16 goes to the same name with -f16")
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--rate", type=float, default=4e-3)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()

    torch.manual_seed(1)
    torch.set_num_threads(args.threads)
    text = args.text.read_text(encoding="utf-8")
    tokenizer = train_tokenizer(text, CONFIG["vocab_size"])
    chapters = text.split("\n\n")
    tokens = encode(tokenizer, chapters)
    print(f"{len(text)} characters, {len(tokens)} tokens, {len(chapters)} chapters")
    model, loss = train(LlamaConfig(**CONFIG), tokens, args.steps, args.batch, args.length, args.rate)
    print(f"held-out loss {loss:.3f}")
    print(f"{sum(p.numel() for p in model.parameters())} parameters")
    save(model, tokenizer, args.out, torch.float32)
    save(model, tokenizer, args.out.with_name(args.out.name + "-f16"), torch.float16)
    for prompt in ("In the beginning", "And the king said", "The LORD"):
        ids = torch.tensor([tokenizer.encode(prompt).ids])
        out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=48, do_sample=False, pad_token_id=0)
        print(repr(tokenizer.decode(out[0].tolist())))


if __name__ == "__main__":
    main()
