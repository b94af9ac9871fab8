"""A Llama-shaped decoder on plain torch with a static KV cache: the model of engine.py.

In: a Shape. Out: LlamaModel, whose decode step reads static inputs and writes a static output, so that it can be captured.
Weights are random, from a seed: what the engine shows does not depend on them.
"""

import dataclasses

import torch
import torch.nn.functional as F
from torch import nn


@dataclasses.dataclass(frozen=True)
class Shape:
    """Sizes of a Llama-architecture model, named as in its config.json."""

    hidden_size: int = 256
    intermediate_size: int = 704
    num_hidden_layers: int = 4
    num_attention_heads: int = 8
    num_key_value_heads: int = 4
    vocab_size: int = 1000
    rms_norm_eps: float = 1e-5
    rope_theta: float = 10000.0

    @property
    def head_dim(self):
        return self.hidden_size // self.num_attention_heads


class RMSNorm(nn.Module):
    def __init__(self, size, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x):
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)).to(x.dtype) * self.weight


class Attention(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.heads, self.kv_heads, self.dim = s.num_attention_heads, s.num_key_value_heads, s.head_dim
        self.qkv = nn.Linear(s.hidden_size, (self.heads + 2 * self.kv_heads) * self.dim, bias=False)
        self.out = nn.Linear(self.heads * self.dim, s.hidden_size, bias=False)

    def forward(self, x, cos, sin, cache, slots, positions, mask):
        """x [n, t, hidden]; cache (keys, values), each [slots, length, kv_heads, dim]; mask True where to look."""
        n, t, _ = x.shape
        q, k, v = self.qkv(x).split([self.heads * self.dim, self.kv_heads * self.dim, self.kv_heads * self.dim], -1)
        q = rotate(q.view(n, t, self.heads, self.dim), cos, sin)
        k = rotate(k.view(n, t, self.kv_heads, self.dim), cos, sin)
        keys, values = cache
        keys[slots[:, None], positions] = k
        values[slots[:, None], positions] = v.view(n, t, self.kv_heads, self.dim)
        group = self.heads // self.kv_heads
        k = keys[:n].repeat_interleave(group, 2).transpose(1, 2)
        v = values[:n].repeat_interleave(group, 2).transpose(1, 2)
        o = F.scaled_dot_product_attention(q.transpose(1, 2), k, v, attn_mask=mask)
        return self.out(o.transpose(1, 2).reshape(n, t, -1))


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class Layer(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.attention_norm = RMSNorm(s.hidden_size, s.rms_norm_eps)
        self.attention = Attention(s)
        self.mlp_norm = RMSNorm(s.hidden_size, s.rms_norm_eps)
        self.gate_up = nn.Linear(s.hidden_size, 2 * s.intermediate_size, bias=False)
        self.down = nn.Linear(s.intermediate_size, s.hidden_size, bias=False)

    def forward(self, x, *attention):
        x = x + self.attention(self.attention_norm(x), *attention)
        gate, up = self.gate_up(self.mlp_norm(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


class LlamaModel(nn.Module):
    """Parameters and the rotary table; forward gives the next token of each row."""

    def __init__(self, shape, length):
        super().__init__()
        self.shape, self.length = shape, length
        self.embed = nn.Embedding(shape.vocab_size, shape.hidden_size)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.num_hidden_layers))
        self.norm = RMSNorm(shape.hidden_size, shape.rms_norm_eps)
        self.head = nn.Linear(shape.hidden_size, shape.vocab_size, bias=False)
        half = shape.head_dim // 2
        angles = torch.arange(length).float()[:, None] * shape.rope_theta ** (-torch.arange(half).float() / half)
        self.register_buffer("cos", angles.cos()[:, None, :])
        self.register_buffer("sin", angles.sin()[:, None, :])
        self.register_buffer("range", torch.arange(length))
        self.register_buffer("slots", torch.arange(1024))

    def forward(self, tokens, positions, cache, layers=None):
        """tokens and positions [n, t]; cache one (keys, values) a layer; layers: only the first so many."""
        n = tokens.shape[0]
        x = self.embed(tokens)
        cos, sin = self.cos[positions].to(x.dtype), self.sin[positions].to(x.dtype)
        mask = self.range <= positions[:, None, :, None]
        for layer, kv in list(zip(self.layers, cache))[:layers]:
            x = layer(x, cos, sin, kv, self.slots[:n], positions, mask)
        return self.head(self.norm(x[:, -1])).argmax(-1)
