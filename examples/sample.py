"""The sample capture: a clothed, coloured human in motion, as a mesh sequence in one small file.

Source and licence: body from MakeHuman/MPFB (CC0), motion, T-shirt simulation and colours by the
GaussiAnimate contributors (GPL-3.0-or-later for the code, CC0 for the data).

The file keeps positions as int16 in 1/2048 m; neighbouring vertices move alike, so differences in time and
then along the vertex order are small numbers, whose bytes (low and high plane apart) LZMA packs well.
"""

from __future__ import annotations

import lzma
from pathlib import Path

import numpy as np

from gaussianimate.core.capture import Capture

SAMPLE = Path(__file__).with_name("clothed_human.npz")
STEPS_PER_METRE = 2048


def pack(positions: np.ndarray) -> np.ndarray:
    """Compress positions (F, N, 3) in metres to bytes, rounded to 1/2048 m."""
    steps = np.round(positions * STEPS_PER_METRE).astype(np.int16)
    in_time = np.diff(steps, axis=0, prepend=np.zeros_like(steps[:1]))
    residual = np.diff(in_time, axis=1, prepend=np.zeros_like(in_time[:, :1]))
    planes = np.moveaxis(residual.astype("<i2").view(np.uint8).reshape(*residual.shape, 2), -1, 0)
    return np.frombuffer(lzma.compress(planes.tobytes(), preset=9), np.uint8)


def unpack(payload: np.ndarray, shape: tuple[int, int, int]) -> np.ndarray:
    """Invert :func:`pack`: positions (F, N, 3) float32 in metres."""
    planes = np.frombuffer(lzma.decompress(payload.tobytes()), np.uint8).reshape(2, *shape)
    residual = np.ascontiguousarray(np.moveaxis(planes, 0, -1)).view("<i2")[..., 0]
    steps = residual.cumsum(axis=1, dtype=np.int16).cumsum(axis=0, dtype=np.int16)
    return steps.astype(np.float32) / STEPS_PER_METRE


def load_sample() -> Capture:
    """Return the sample as a mesh capture with vertex colours, Y up."""
    with np.load(SAMPLE) as file:
        positions = unpack(file["positions"], tuple(file["shape"]))
        return Capture(
            name="clothed human",
            positions=positions,
            frame_valid=np.ones(len(positions), bool),
            faces=file["faces"],
            colors=file["colors"].astype(np.float32) / 255,
            fps=float(file["fps"]),
            up="y",
        )
