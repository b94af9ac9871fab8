"""Other values in the weights of a recording.

In: a tensor of a checkpoint, and its name. Out: other values of the same shape and type, the same in each process. Fails: as torch does.

Without other values in one of two recordings, graphs that hold a value made from weights look like graphs of any weights.
"""

import zlib

import torch

LEAST, MOST = 1.125, 1.375  # the least changes an element of FP8, too
PIECE = 1 << 22  # elements whose changed values take memory at a time


def other(name, t):
    """Each number grows a little, so that results stay numbers. All else is put in reverse order, so that an index stays one."""
    flat = t.detach().cpu().contiguous().view(-1)
    packed = "float4" in str(t.dtype)  # two numbers in a byte, with which torch does not compute
    if packed or not t.is_floating_point():
        return (flat.view(torch.uint8) if packed else flat).flip(0).view(t.dtype).view(t.shape)
    random, most, made = torch.Generator().manual_seed(zlib.crc32(name.encode())), torch.finfo(t.dtype).max, torch.empty_like(flat)
    for at in range(0, flat.numel(), PIECE):
        piece = flat[at : at + PIECE].to(torch.float32)
        piece = piece * torch.empty_like(piece).uniform_(LEAST, MOST, generator=random)
        made[at : at + PIECE] = piece.clamp_(-most, most).to(t.dtype)
    return made.view(t.shape)
