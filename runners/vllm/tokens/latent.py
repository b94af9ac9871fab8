"""The parts of multi-head latent attention (MLA) that vLLM does not have in Triton: writes to its cache, and attention of prompts.

In: none; `install` replaces them. Out: the same results up to rounding; TRITON_MLA's decode steps stay vLLM's own. vLLM computes prompts by FlashAttention, which is
machine code. Fails: as Triton does; for a cache of another type; for a prompt that is computed in parts, or begins with a cached prefix.
"""

import torch
import triton
import triton.language as tl
import vllm._custom_ops  # declares the operators

_library = torch.library.Library("_C_cache_ops", "IMPL")


@triton.jit
def write_latent(latent, position, cache, slots, width, rotated, latent_row, position_row, block, slot_pitch, SIZE: tl.constexpr, BLOCK: tl.constexpr):
    """A token's latent vector, and behind it the part of its key that has a position."""
    row, i = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    slot = tl.load(slots + row)
    at = cache + slot // SIZE * block + slot % SIZE * slot_pitch + i
    of_latent = i < width
    x = tl.load(latent + row * latent_row + i, of_latent, 0.0)
    y = tl.load(position + row * position_row + i - width, (i >= width) & (i < width + rotated), 0.0)
    tl.store(at, tl.where(of_latent, x, y).to(cache.dtype.element_ty), (i < width + rotated) & (slot >= 0))


@triton.jit
def attend(
    q, k, v, out, starts, prompts, scale, width, value_width, q0, q1, k0, k1, v0, v1, out0, out1, BLOCK: tl.constexpr, WIDTH: tl.constexpr, PROMPTS: tl.constexpr
):  # fmt: skip
    """A token's attention, in one head, over its prompt as far as the token."""
    token, head, i, e = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.arange(0, PROMPTS), tl.arange(0, WIDTH)
    begins = tl.load(starts + i, i < prompts, 0).to(tl.int64)
    begin = tl.max(tl.where(begins <= token, begins, 0), 0)
    query = tl.load(q + token * q0 + head * q1 + e, e < width, 0.0).to(tl.float32)
    best, total, sums = -float("inf"), 0.0, tl.zeros((WIDTH,), tl.float32)
    for first in range(begin, token + 1, BLOCK):
        at = first + tl.arange(0, BLOCK).to(tl.int64)
        seen = at <= token
        keys = tl.load(k + at[:, None] * k0 + head * k1 + e[None, :], seen[:, None] & (e < width)[None, :], 0.0).to(tl.float32)
        score = tl.where(seen, tl.sum(keys * query[None, :], 1) * scale, -float("inf"))
        higher = tl.maximum(best, tl.max(score, 0))
        weight, kept = tl.exp(score - higher), tl.exp(best - higher)
        values = tl.load(v + at[:, None] * v0 + head * v1 + e[None, :], seen[:, None] & (e < value_width)[None, :], 0.0).to(tl.float32)
        sums = sums * kept + tl.sum(weight[:, None] * values, 0)
        best, total = higher, total * kept + tl.sum(weight, 0)
    tl.store(out + token * out0 + head * out1 + e, (sums / total).to(out.dtype.element_ty), e < value_width)


def concat_and_cache_mla(kv_c, k_pe, kv_cache, slot_mapping, kv_cache_dtype, scale):
    if kv_cache_dtype != "auto" or kv_cache.dtype != kv_c.dtype:
        raise NotImplementedError(f"a latent cache of type {kv_cache_dtype}")
    width, rotated = kv_c.shape[-1], k_pe.shape[-1]
    if slot_mapping.numel():
        write_latent[(slot_mapping.numel(),)](
            kv_c, k_pe, kv_cache, slot_mapping, width, rotated, kv_c.stride(0), k_pe.stride(0), kv_cache.stride(0), kv_cache.stride(1),
            SIZE=kv_cache.shape[1], BLOCK=triton.next_power_of_2(width + rotated),
        )  # fmt: skip


def new_tokens(backend, q, k, v, return_softmax_lse, out=None, output_scale=None):
    """In place of FlashAttnPrefillBackend.run_prefill_new_tokens."""
    if return_softmax_lse or output_scale is not None:
        raise NotImplementedError("a prompt that is not computed at once, or a result that is quantized")
    starts = backend._prefill_metadata.query_start_loc
    if out is None:
        out = torch.empty((*q.shape[:2], v.shape[-1]), dtype=q.dtype, device=q.device)
    attend[q.shape[:2]](
        q, k, v, out, starts, len(starts) - 1, backend.scale, q.shape[-1], v.shape[-1],
        *(s for t in (q, k, v, out) for s in t.stride()[:2]),
        BLOCK=16, WIDTH=triton.next_power_of_2(q.shape[-1]), PROMPTS=triton.next_power_of_2(len(starts)),
    )  # fmt: skip
    return out


def install():
    from vllm.v1.attention.backends.mla.prefill import flash_attn

    flash_attn.FlashAttnPrefillBackend.run_prefill_new_tokens = new_tokens
    _library.impl("concat_and_cache_mla", concat_and_cache_mla, "CUDA", allow_override=True)
