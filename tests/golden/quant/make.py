#!/usr/bin/env python3
"""Makes vectors.txt: blocks of every quantized type with the floats they stand for, and floats with their blocks.

The oracle is the Python package `gguf` (0.19.0, with numpy), whose routines follow ggml's bit for bit. Each line is
  dequantize TYPE HEX(blocks) HEX(float32, little-endian)
  quantize   TYPE HEX(float32, little-endian) HEX(blocks)
Blocks to dequantize are random bytes with scales of sensible size, and a block whose bytes are all ones but the scales.
"""
import pathlib

import numpy as np
from gguf import quants
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType as T

# Offsets of the half-precision scales within a block.
SCALES = {T.Q4_0: [0], T.Q4_1: [0, 2], T.Q5_0: [0], T.Q5_1: [0, 2], T.Q8_0: [0], T.Q4_K: [0, 2], T.Q5_K: [0, 2], T.Q6_K: [208]}
BLOCKS = 4

random = np.random.default_rng(20)
lines = []
for kind, offsets in SCALES.items():
    elements, size = GGML_QUANT_SIZES[kind]
    blocks = random.integers(0, 256, (BLOCKS, size), dtype=np.uint8)
    blocks[-1] = 255
    for offset in offsets:
        scales = random.normal(0, 0.05, BLOCKS).astype(np.float16)
        scales[1] = np.float16(6e-8)  # the least subnormal number
        blocks[:, offset : offset + 2] = scales.view(np.uint8).reshape(BLOCKS, 2)
    floats = quants.dequantize(blocks, kind).astype("<f4")
    lines.append(f"dequantize {kind.name} {blocks.tobytes().hex()} {floats.tobytes().hex()}")

for kind in (T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1, T.Q8_0):
    floats = random.normal(0, 1, (BLOCKS, 32)).astype("<f4")
    floats[1] = 0
    floats[2] *= 1e-3
    floats[3, 5] = 40
    blocks = quants.quantize(floats, kind)
    lines.append(f"quantize {kind.name} {floats.tobytes().hex()} {blocks.tobytes().hex()}")

for kind in (T.F16, T.BF16):
    floats = random.normal(0, 1, 64).astype("<f4")
    floats[:8] = [0, -0.0, 1e-7, -3e-8, 65504, 1e-40, 2.0**-14, 1 + 2.0**-11]
    halves = quants.quantize(floats, kind)
    lines.append(f"quantize {kind.name} {floats.tobytes().hex()} {halves.tobytes().hex()}")
    back = quants.dequantize(halves, kind).astype("<f4")
    lines.append(f"dequantize {kind.name} {halves.tobytes().hex()} {back.tobytes().hex()}")

pathlib.Path(__file__).with_name("vectors.txt").write_text("\n".join(lines) + "\n")
