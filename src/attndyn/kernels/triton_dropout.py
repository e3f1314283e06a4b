"""The kernel of `kernels/dropout.py`. Sixteen units share a draw of Philox 4x32-10; each computes it for itself, which
costs less than passing it on."""

import triton
import triton.language as tl

BLOCK = 1024


@triton.jit(do_not_specialize=["stream", "place", "batch", "length"])
def drop(x, result, seeds, step, stream, place, batch, length, width, dropped, scale, block: tl.constexpr):
    replica = tl.program_id(1).to(tl.int64)
    unit = tl.program_id(0) * block + tl.arange(0, block)
    units = batch * length * width
    real = unit < units
    text, time = unit // (length * width), unit // width % length
    byte = (time * batch + text) * width + unit % width
    zero = byte * 0
    key = tl.load(seeds + replica) | (stream.to(tl.int64) << 32)
    w0, w1, w2, w3 = tl.philox(key, byte // 16, zero + tl.load(step).to(tl.int32), zero + place, zero)
    word = byte // 4 % 4
    drawn = tl.where(word < 2, tl.where(word == 0, w0, w1), tl.where(word == 2, w2, w3))
    kept = ((drawn >> (byte % 4 * 8).to(tl.uint32)) & 255).to(tl.int32) >= dropped
    at = replica * units + unit
    tl.store(result + at, tl.where(kept, tl.load(x + at, real) * scale, 0.0), real)
