"""How the bones that influence a splat are blended into one motion: linearly or by dual quaternions.

Both work on displacements about the centre c of the cloud (see `deform.py`): a bone T = [A | t] is held as
``[A - 1 | A c + t - c]``, formed in double precision. A last bone that never moves answers to index -1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import RigError
from ..skinning.skin import STATIC, Skin
from . import dual_quaternion

Floats = NDArray[np.floating]
BlendMode = Literal["linear", "dual_quaternion"]


class Blend(Protocol):
    """The blended motion of C splats."""

    @property
    def displacement(self) -> Floats:
        """p' - p, (C, 3); 0 where the motion is not finite."""
        ...

    @property
    def lost(self) -> NDArray[np.bool_]:
        """Where the motion is not finite, (C,)."""
        ...

    @property
    def rigid(self) -> Floats:
        """R_rigid, (C, 3, 3)."""
        ...

    @property
    def elastic(self) -> Floats:
        """R_elastic, (C, 3, 3)."""
        ...


@dataclass(frozen=True)
class LinearBlend:
    """Linear blend skinning; R_elastic is formed when asked for."""

    influences: Floats  # (C, K, 3) T_j p - p
    displacement: Floats
    lost: NDArray[np.bool_]
    rigid: Floats
    gradients: Floats  # (C, K, 3)

    @property
    def elastic(self) -> Floats:
        """R_elastic = sum_j (T_j p - p') G_j^T, (C, 3, 3)."""
        relative = self.influences - self.displacement[:, None]
        return np.swapaxes(relative, 1, 2) @ self.gradients


def chunked_blends(
    positions: Floats,
    skin: Skin,
    transforms: Floats,
    chunk: int,
    mode: BlendMode = "linear",
    parents: NDArray[np.integer] | None = None,
) -> Iterator[tuple[slice, Blend]]:
    """Blend the bones of ``chunk`` splats at a time.

    Parameters
    ----------
    positions : (N, 3)
    skin : N rows
    transforms : (B, 3, 4) rest -> pose
    mode : "linear", or "dual_quaternion" (rigid bones only: splats under bones that scale blend linearly)
    parents : (B,) parent of each bone, -1 for roots, parents first: gives dual quaternions consistent signs

    Raises
    ------
    RigError : skin and positions, or skin and transforms, do not fit
    """
    transforms = np.asarray(transforms, dtype=np.float64).reshape(-1, 3, 4)
    check_fit(len(positions), skin, len(transforms))
    finite = positions[np.isfinite(positions).all(axis=1)]
    centre = finite.mean(axis=0, dtype=np.float64) if len(finite) else np.zeros(3)
    moves = np.zeros((len(transforms) + 1, 3, 4))
    moves[:-1, :, :3] = transforms[:, :, :3] - np.eye(3)
    moves[:-1, :, 3] = moves[:-1, :, :3] @ centre + transforms[:, :, 3]
    bones = dual_quaternion.bones(moves, parents, positions.dtype) if mode == "dual_quaternion" else None
    moves = moves.astype(positions.dtype)
    indices = _without_broken(skin, moves)
    for start in range(0, len(positions), chunk):
        rows = slice(start, start + chunk)
        local = (positions[rows] - centre).astype(positions.dtype)
        weights = skin.weights[rows].astype(local.dtype, copy=False)
        gradients = skin.gradients[rows].astype(local.dtype, copy=False)
        blend = blend_linearly(local, indices[rows], weights, gradients, moves)
        if bones is not None:
            blend = dual_quaternion.blend(local, indices[rows], weights, gradients, bones, blend)
        yield rows, blend


def _without_broken(skin: Skin, moves: Floats) -> NDArray[np.int32]:
    """Return the skin's bones (N, K), the static one in unused slots that name a bone that is not finite."""
    broken = ~np.isfinite(moves).all(axis=(1, 2))
    if not broken.any():
        return skin.indices
    unused = broken[skin.indices] & (skin.weights == 0) & (skin.gradients == 0).all(axis=2)
    return np.where(unused, STATIC, skin.indices)


def blend_linearly(
    local: Floats, indices: NDArray[np.int32], weights: Floats, gradients: Floats, moves: Floats
) -> LinearBlend:
    """Blend bones ``moves`` (B + 1, 3, 4), [A - 1 | displacement of the centre], at ``local`` (C, 3)."""
    influences = np.empty((*indices.shape, 3), dtype=local.dtype)
    total = np.zeros((len(local), 3, 4), dtype=local.dtype)
    for slot in range(indices.shape[1]):
        move = moves[indices[:, slot]]
        influences[:, slot] = (move[:, :, :3] @ local[:, :, None])[..., 0] + move[:, :, 3]
        total += weights[:, slot, None, None] * move
    displacement = np.einsum("ck,cki->ci", weights, influences)
    lost = ~np.isfinite(displacement).all(axis=1)
    displacement[lost] = 0
    rigid = total[:, :, :3] + np.eye(3, dtype=local.dtype)
    return LinearBlend(influences, displacement, lost, rigid, gradients)


def check_fit(count: int, skin: Skin, bone_count: int) -> None:
    """Raise `RigError` unless the skin has ``count`` rows and no index beyond ``bone_count``."""
    if len(skin) != count:
        raise RigError(
            f"The skin has {len(skin)} rows but the cloud {count} splats; build the rig for this cloud"
        )
    if skin.indices.size and (skin.indices.max() >= bone_count or skin.indices.min() < STATIC):
        worst = skin.indices.max() if skin.indices.max() >= bone_count else skin.indices.min()
        raise RigError(
            f"The skin names bone {worst}, but there are only {bone_count} bone transforms; "
            "build the rig again"
        )
