# SPDX-License-Identifier: Apache-2.0
"""Writes golden.safetensors with the reference implementation (safetensors 0.8.0, torch 2.11).

tests/io/safetensors_test.cpp builds the same tensors and expects the same bytes. Run: python3 make_golden.py
"""
import pathlib

import torch
from safetensors.torch import save_file

tensors = {
    "f64": torch.arange(6, dtype=torch.float64).reshape(2, 3) / 4,
    "scalar": torch.tensor(-2.5),
    "f32.b": torch.tensor([float("nan"), float("inf"), -0.0]),
    "f16": torch.tensor([1.0, 65504.0], dtype=torch.float16),
    "bf16": torch.tensor([1.0, 2.0, -3.0], dtype=torch.bfloat16),
    "e4m3": torch.tensor([1.0, -2.0], dtype=torch.float8_e4m3fn),
    "e5m2": torch.tensor([0.5], dtype=torch.float8_e5m2),
    "i64": torch.tensor([-(2**63), 2**63 - 1]),
    'i32 "ü"\n': torch.tensor([[1], [-2]], dtype=torch.int32),
    "i16": torch.tensor([-300], dtype=torch.int16),
    "i8": torch.tensor([-128, 127], dtype=torch.int8),
    "u8": torch.tensor([0, 255], dtype=torch.uint8),
    "u16": torch.tensor([65535], dtype=torch.uint16),
    "u32": torch.tensor([7], dtype=torch.uint32),
    "u64": torch.tensor([9], dtype=torch.uint64),
    "bool": torch.tensor([True, False, True]),
    "empty": torch.zeros(0, 3),
    "complex": torch.tensor([1 + 2j], dtype=torch.complex64),
}
save_file(tensors, pathlib.Path(__file__).parent / "golden.safetensors", metadata={"format": "pt"})
