"""vLLM's kernels in C++ that a mixture of experts takes, in Triton: the choice of experts, the order of their tokens, the sum of their results.

In: none; `install` replaces them. Out: the same results up to rounding. Fails: as Triton does; for experts that are spread over ranks, or chosen
with a bias.
"""

import torch
import triton
import triton.language as tl
import vllm._custom_ops  # declares the operators

_library = torch.library.Library("_moe_C", "IMPL")


@triton.jit
def choose(weights, ids, places, logits, padding, n, rows, K: tl.constexpr, NORMAL: tl.constexpr, PADDED: tl.constexpr, BLOCK: tl.constexpr):
    """PADDED: some rows have no token, and get no expert."""
    row, i = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    token = tl.load(padding + row) == 0 if PADDED else True
    x = tl.load(logits + row * n + i, i < n, float("-inf")).to(tl.float32)
    p = tl.exp(x - tl.max(x, 0))
    p /= tl.sum(p, 0)
    left, total = p, 0.0
    for _ in tl.static_range(K):
        best = tl.argmax(left, 0)
        total += tl.max(left, 0)
        left = tl.where(i == best, -1.0, left)
    if not NORMAL:
        total = 1.0
    left = p
    for k in tl.static_range(K):
        best = tl.argmax(left, 0)
        tl.store(weights + row * K + k, tl.where(token, tl.max(left, 0) / total, 0.0).to(weights.dtype.element_ty))
        tl.store(ids + row * K + k, tl.where(token, best, -1).to(ids.dtype.element_ty))
        tl.store(places + row * K + k, (k * rows + row).to(places.dtype.element_ty))
        left = tl.where(i == best, -1.0, left)


@triton.jit
def sort(ids, order, experts, padded, n, room, blocks, EXPERTS: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr, ROOM: tl.constexpr, BLOCKS: tl.constexpr):
    """Tokens by expert, each expert's in whole blocks; n stands for no token. One program."""
    i, slot, block = tl.arange(0, BLOCK), tl.arange(0, ROOM), tl.arange(0, BLOCKS)
    chosen = tl.load(ids + i, i < n, EXPERTS).to(tl.int32)
    owner = tl.full((BLOCKS,), -1, tl.int32)
    begin = 0
    for e in range(EXPERTS):
        mine = (chosen == e).to(tl.int32)
        count = tl.sum(mine, 0)
        end = begin + (count + SIZE - 1) // SIZE * SIZE
        tl.store(order + begin + tl.cumsum(mine, 0) - 1, i, mine == 1)
        tl.store(order + slot, n, (slot >= begin + count) & (slot < end))
        owner = tl.where((block * SIZE >= begin) & (block * SIZE < end), e, owner)
        begin = end
    tl.store(order + slot, n, (slot >= begin) & (slot < room))
    tl.store(experts + block, owner, block < blocks)
    tl.store(padded, begin)


@triton.jit
def add_up(x, out, ids, width, K: tl.constexpr, CHOSEN: tl.constexpr, BLOCK: tl.constexpr):
    """CHOSEN: a result without an expert does not count."""
    row, i = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in tl.static_range(K):
        counts = tl.load(ids + row * K + k) >= 0 if CHOSEN else True
        total += tl.load(x + (row * K + k) * width + i, (i < width) & counts, 0.0).to(tl.float32)
    tl.store(out + row * width + i, total.to(out.dtype.element_ty), i < width)


def topk_softmax(topk_weights, topk_indices, token_expert_indices, gating_output, renormalize, bias, is_padding=None):
    if bias is not None:
        raise NotImplementedError("experts that are chosen with a bias")
    rows, n = gating_output.shape
    if rows:
        ids = topk_indices.view(torch.int32) if topk_indices.dtype == torch.uint32 else topk_indices
        choose[(rows,)](
            topk_weights, ids, token_expert_indices, gating_output, gating_output if is_padding is None else is_padding.view(torch.uint8), n, rows,
            K=topk_weights.shape[1], NORMAL=renormalize, PADDED=is_padding is not None, BLOCK=triton.next_power_of_2(n),
        )  # fmt: skip


def moe_align_block_size(topk_ids, num_experts, block_size, sorted_token_ids, experts_ids, num_tokens_post_pad, maybe_expert_map, scatter_idx=None):
    if maybe_expert_map is not None or scatter_idx is not None:
        raise NotImplementedError("experts that are spread over ranks, or whose results are scattered")
    n, room, blocks = topk_ids.numel(), sorted_token_ids.numel(), experts_ids.numel()
    sort[(1,)](
        topk_ids, sorted_token_ids, experts_ids, num_tokens_post_pad, n, room, blocks, EXPERTS=num_experts, SIZE=block_size,
        BLOCK=triton.next_power_of_2(max(n, 1)), ROOM=triton.next_power_of_2(max(room, 1)), BLOCKS=triton.next_power_of_2(max(blocks, 1)),
    )  # fmt: skip


def moe_sum(input, output, topk_ids=None, expert_map=None):
    if expert_map is not None:
        raise NotImplementedError("experts that are spread over ranks")
    rows, k, width = input.shape
    if rows:
        ids = input if topk_ids is None else topk_ids
        add_up[(rows, triton.cdiv(width, 128))](input, output, ids, width, K=k, CHOSEN=topk_ids is not None, BLOCK=128)


def install():
    for f in (topk_softmax, moe_align_block_size, moe_sum):
        _library.impl(f.__name__, f, "CUDA", allow_override=True)
