"""How the data of splats lie in textures: arrays of texels, row after row, within a device's limit.

A table of T texels a splat holds texel t of splat i at linear index T i + t, which is column ``index mod
width`` and row ``index // width`` of the texture.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..cloud import GaussianCloud
from ..errors import RigError
from ..rotations import normalize_quaternions
from ..skinning.quantize import STATIC_BYTE, PackedSkin
from ..skinning.skin import Skin

F32 = NDArray[np.float32]
SPLAT_TEXELS = 4
SH_TEXELS = (0, 3, 6, 12)  # by degree: coefficients x 3 values in texels of 4
SCALE_LIMIT = 1e9  # metres; beyond, squares of pixels no longer fit into a float
COUNT_LIMIT = 1 << 24  # beyond, a float no longer holds every index
BONE_LIMIT = (1 << 12) - 1  # two bones and "static" share a float


def table_width(texels: int, limit: int) -> int:
    """Return the width of the texture that holds so many texels: a power of two, as shaders divide by it.

    Raises
    ------
    RigError : not even the widest texture of ``limit`` rows does
    """
    widest = 1 << limit.bit_length() - 1
    width = min(widest, 4096)
    if texels > width * limit:
        width = widest
    if texels > width * limit:
        raise RigError(
            f"This graphics device holds {width * limit:,} values in a texture, and the drawer needs "
            f"{texels:,}; use Native display, or fewer splats"
        )
    return width


def as_table(texels: F32, limit: int) -> F32:
    """Return texels (T, C) as a texture (height, width, C), the last row padded with 0.

    Raises
    ------
    RigError : they do not fit into a texture of ``limit`` x ``limit``
    """
    count, channels = texels.shape
    width = table_width(count, limit)
    height = max(-(-count // width), 1)
    if count == height * width:
        return np.ascontiguousarray(texels, np.float32).reshape(height, width, channels)
    table = np.zeros((height * width, channels), np.float32)
    table[:count] = texels
    return table.reshape(height, width, channels)


def fitting_degree(counts: dict[int, int], limit: int) -> int:
    """Return the highest degree of spherical harmonics whose table fits a texture.

    counts : splats of each degree 0-3
    """
    widest = 1 << limit.bit_length() - 1
    for degree in (3, 2, 1):
        texels = sum(n * SH_TEXELS[min(d, degree)] for d, n in counts.items())
        if texels < widest * limit:  # one is left free, so that no table is empty
            return degree
    return 0


def splat_texels(
    cloud: GaussianCloud, centre: NDArray[np.float64], bones: NDArray[np.int32] | None = None
) -> F32:
    """Return (4 N, 4): position about ``centre`` and opacity; quaternion wxyz; scales; f_dc.

    The last two texels end with two bones each, of up to four: ``(b0 + 1) + 4096 (b1 + 1)``, where -1 is
    static and fills up. They cost no texel of their own there, which the GPU feels.
    Splats with a value that is not finite are all 0, which is not drawn.

    Parameters
    ----------
    bones : (N, K) of each splat; None: none

    Raises
    ------
    RigError : more bones than two to a float
    """
    table = np.zeros((len(cloud), SPLAT_TEXELS, 4), np.float32)
    table[:, 0, :3] = cloud.positions - centre
    table[:, 0, 3] = cloud.opacities
    table[:, 1] = normalize_quaternions(cloud.rotations)
    table[:, 2, :3] = cloud.scales
    table[:, 3, :3] = cloud.sh[:, 0]
    whole = np.isfinite(table).all(axis=(1, 2)) & np.isfinite(cloud.sh).all(axis=(1, 2))
    table[~whole] = 0
    np.minimum(table[:, 2], SCALE_LIMIT, out=table[:, 2])
    if bones is not None:
        if bones.max(initial=-1) >= BONE_LIMIT:
            raise RigError(f"The drawer moves splats by up to {BONE_LIMIT:,} bones; use Native display")
        for k in range(bones.shape[1]):
            table[:, 2 + k // 2, 3] += (bones[:, k] + 1) << 12 * (k % 2)
    return table.reshape(-1, 4)


def sh_texels(cloud: GaussianCloud, degree: int) -> F32:
    """Return (SH_TEXELS[degree] N, 4): coefficients 1, 2, ... times rgb, one after the other, padded."""
    used = (degree + 1) ** 2
    table = np.zeros((len(cloud), SH_TEXELS[degree] * 4), np.float32)
    table[:, : 3 * (used - 1)] = cloud.sh[:, 1:used].reshape(len(cloud), 3 * (used - 1))
    return table.reshape(-1, 4)


def exact_skin_texels(skin: Skin, influences: int) -> F32:
    """Return (N K, 4): gradients and weights; the bones lie with the splats.

    influences : K >= the skin's own; the rest is weightless
    """
    table = np.zeros((len(skin), influences, 4), np.float32)
    table[:, : skin.influences, :3] = skin.gradients
    table[:, : skin.influences, 3] = skin.weights
    return table.reshape(-1, 4)


def paper10_texels(packed: PackedSkin) -> F32:
    """Return (2 N, 4) of 8-bit values over 255: bones and weights; first gradient with an offset of 128.

    The second gradient is the first reversed and is not stored.
    """
    records = packed.records
    table = np.zeros((len(records), 2, 4), np.float32)
    table[:, 0, :2] = records["bones"]
    table[:, 0, 2:] = records["weights"]
    table[:, 1, :3] = records["gradients"][:, 0].astype(np.int16) + 128
    return table.reshape(-1, 4) / np.float32(255)


def compact_texels(packed: PackedSkin, influences: int) -> tuple[F32, F32]:
    """Return bones (N, 2 | 4) over 255, and weights with gradients (N (K - 1), 4) over 65535.

    Gradients have an offset of 32768. ``influences`` K >= the skin's own: what is missing to 1 stays with
    the last of the skin's bones, whose weight is written out where it is no longer the last.
    """
    records = packed.records
    have = records["bones"].shape[1]
    bones = np.full((len(records), 2 if influences == 2 else 4), STATIC_BYTE, np.float32)
    bones[:, :have] = records["bones"]
    values = np.zeros((len(records), influences - 1, 4), np.float32)
    values[..., 1:] = 32768
    values[:, : have - 1, 0] = records["weights"]
    values[:, : have - 1, 1:] = records["gradients"].astype(np.int32) + 32768
    if influences > have:
        values[:, have - 1, 0] = 65535 - records["weights"].sum(axis=1, dtype=np.int64)
        values[:, have - 1, 1:] -= records["gradients"].sum(axis=1, dtype=np.int64)
    return bones / np.float32(255), values.reshape(-1, 4) / np.float32(65535)
