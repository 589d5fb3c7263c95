#!/usr/bin/env python3
"""Makes exp.txt: the bits of exp for numbers from 0 to -88, by the documented sequence of IEEE operations in numpy.

Each line holds the hexadecimal bits of x and of exp(x), both float32. numpy's elementwise operations on float32 are single IEEE
operations, so this is another implementation of kernels/sampling/elementary.hpp that must agree to the last bit.
"""
import pathlib

import numpy as np

f = np.float32
random = np.random.default_rng(3)
x = np.concatenate([[0, -1, -0.5, -1e-30, -86.9, -87, -88, -1e30], -random.exponential(5, 400)]).astype(f)
kept = np.maximum(x, f(-87))
shift = f(12582912)
shifted = kept * f(1.44269504088896341) + shift
n = shifted - shift
r = kept - n * f(0.693359375)
r = r - n * f(-2.12194440e-4)
p = np.full_like(r, f(1.9875691500e-4))
for c in (1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1):
    p = p * r + f(c)
p = p * (r * r) + r
p = p + f(1)
y = np.where(x < f(-87), f(0), p * np.exp2(n.astype(np.float64)).astype(f))
assert np.all(np.abs(y - np.exp(x.astype(np.float64))) <= 2e-7 * np.exp(x.astype(np.float64)) + 2e-38)
lines = [f"{a:08x} {b:08x}" for a, b in zip(x.view(np.uint32), y.astype(f).view(np.uint32))]
pathlib.Path(__file__).with_name("exp.txt").write_text("\n".join(lines) + "\n")
