# SPDX-License-Identifier: Apache-2.0
"""Inputs and weights of the goldens as functions of only (seed, name, element): Philox4x32-10 (Salmon et al., 2011), so
that no file needs to store them. draws.h is the same in C++. Used by the make_*.py in this folder."""
import numpy
import torch

SEED = 2026
M0, M1, W0, W1 = (numpy.uint64(v) for v in (0xD2511F53, 0xCD9E8D57, 0x9E3779B9, 0xBB67AE85))
LOW = numpy.uint64(0xFFFFFFFF)
HALF = numpy.uint64(32)


def philox(counter, key):
    """Four words of counters (arrays of uint64 below 2^32) and two of a key -> four arrays of 32 random bits."""
    c = [numpy.asarray(word, dtype=numpy.uint64) for word in counter]
    k0, k1 = (numpy.uint64(word) for word in key)
    for _ in range(10):
        product0, product1 = M0 * c[0], M1 * c[2]
        c = [(product1 >> HALF) ^ c[1] ^ k0, product1 & LOW, (product0 >> HALF) ^ c[3] ^ k1, product0 & LOW]
        k0, k1 = (k0 + W0) & LOW, (k1 + W1) & LOW
    return c


assert [int(word) for word in philox([0, 0, 0, 0], [0, 0])] == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


def name_hash(name):
    """FNV-1a, 64 bits."""
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


def bits(name, count):
    """count words of 32 random bits, as uint64."""
    spread = name_hash(name)
    block = numpy.arange((count + 3) // 4, dtype=numpy.uint64)
    same = numpy.zeros_like(block)
    words = philox([block, same + numpy.uint64(spread & 0xFFFFFFFF), same + numpy.uint64(0x80000000),
                    same + numpy.uint64(spread >> 32)], [SEED, 0])
    return numpy.stack(words, 1).reshape(-1)[:count]


def uniform(name, shape, low, high):
    """float64 values that float32 can represent, so that networks of both types have equal weights."""
    unit = (bits(name, int(numpy.prod(shape, dtype=numpy.int64))) >> numpy.uint64(8)).astype(numpy.float64) * 2.0**-24
    values = (low + (high - low) * unit).astype(numpy.float32).astype(numpy.float64)
    return torch.from_numpy(values.reshape(shape))


def below(name, shape, n):
    """int64 in 0 ... n-1."""
    words = (bits(name, int(numpy.prod(shape, dtype=numpy.int64))) * numpy.uint64(n)) >> HALF
    return torch.from_numpy(words.astype(numpy.int64).reshape(shape))


def weight(name, shape):
    """Initial values of the network's tensor of this name: matrices by their fan-in, norms near 1 and 0."""
    if len(shape) > 1:
        fan_in = float(numpy.prod(shape[1:], dtype=numpy.int64))
        bound = (6 / fan_in) ** 0.5
        return uniform(name, shape, -bound, bound)
    if name.endswith(("weight", "running_var")):
        return uniform(name, shape, 0.5, 1.5)
    return uniform(name, shape, -0.25, 0.25)


def sample(name, tensor):
    """The stored part of a large tensor: its norm, its largest magnitude, and four elements."""
    flat = tensor.detach().double().flatten()
    return torch.cat([flat.norm().reshape(1), flat.abs().max().reshape(1), flat[below("at " + name, (4,), flat.numel())]])
