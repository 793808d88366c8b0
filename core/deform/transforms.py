"""Affine maps: from poses to bone transforms, between spaces, and applied to whole clouds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..cloud import GaussianCloud
from ..errors import RigError
from ..rotations import affine_inverse, affine_multiply
from .covariance import deform_shapes
from .sh import rotate_sh
from .svd3 import polar_rotation

Floats = NDArray[np.floating]
SINGLE_PRECISION = 2e-6


def bone_transforms_from_pose(pose: Floats, rest: Floats, tolerance: float = SINGLE_PRECISION) -> Floats:
    """Return T_j = P_j B_j^-1, which carries rest points to posed points.

    Hosts keep bone matrices in single precision, so that an untouched bone gives a matrix a few ulps off the
    identity; such a bone gets the identity itself, so that a rig at rest moves nothing at all.

    Parameters
    ----------
    pose, rest : (B, 3, 4) or (B, 4, 4) bone matrices in one space (in Blender ``pose_bone.matrix`` and
        ``bone.matrix_local``, both in armature space); scale and shear are allowed
    tolerance : largest difference that counts as none, relative to the axes of the bone and, for its place,
        to the reach of the rig

    Returns
    -------
    (B, 3, 4) float64

    Raises
    ------
    RigError : a rest matrix is singular
    """
    pose, rest = np.asarray(pose, dtype=np.float64)[:, :3], np.asarray(rest, dtype=np.float64)[:, :3]
    try:
        transforms = affine_multiply(pose, affine_inverse(rest))
    except np.linalg.LinAlgError:
        flat = int(np.argmin(np.abs(np.linalg.det(rest[:, :, :3]))))
        raise RigError(
            f"Bone {flat} has a rest matrix without volume; give it a scale other than 0"
        ) from None
    off, turn = np.abs(pose - rest), np.abs(rest[:, :, :3]).max(axis=(1, 2), initial=0)
    reach = np.abs(rest[:, :, 3]).max(initial=0)  # of the whole rig
    still = (off[:, :, :3] <= tolerance * turn[:, None, None]).all(axis=(1, 2))
    still &= (off[:, :, 3] <= tolerance * reach).all(axis=1)
    transforms[still] = np.eye(3, 4)
    return transforms


def object_space_transforms(
    transforms: Floats,
    object_world: Floats,
    armature_world: Floats,
    object_rest: Floats,
    armature_rest: Floats,
    tolerance: float = SINGLE_PRECISION,
) -> Floats:
    """Return bone transforms in the splat object's own space: O^-1 H T H_rest^-1 O_rest.

    Read from the right: a rest point of the splat object goes to the world as it was at binding, into the
    armature as it was at binding, follows the bone, goes to the world with the armature as it is now, and
    back into the splat object as that is now. Scales and turns of either object, applied or not, thereby
    deform the cloud exactly as the world shows them.

    Parameters
    ----------
    transforms : (B, 3, 4) T_j = P_j B_j^-1 in armature space (`bone_transforms_from_pose`)
    object_world, armature_world : (3, 4) or (4, 4) O and H, world matrices now
    object_rest, armature_rest : the same, stored when the cloud was bound
    tolerance : how far O^-1 H may be from O_rest^-1 H_rest and count as unmoved, relative to its entries

    Returns
    -------
    (B, 3, 4) float64. Exactly the identity where T is, if the objects stand to each other as at binding.
    """
    matrices = [
        np.asarray(m, dtype=np.float64) for m in (object_world, armature_world, object_rest, armature_rest)
    ]
    object_world, armature_world, object_rest, armature_rest = matrices
    transforms = np.asarray(transforms, dtype=np.float64)
    after = affine_multiply(affine_inverse(object_world), armature_world)
    before = affine_multiply(affine_inverse(armature_rest), object_rest)
    off = np.abs(affine_multiply(after, before) - np.eye(3, 4)).max()
    unmoved = off <= tolerance * (1 + np.abs(after).max())
    if unmoved:
        after = affine_inverse(before)
    chained = affine_multiply(affine_multiply(after, transforms), before)
    if unmoved:
        chained[(transforms == np.eye(3, 4)).all(axis=(1, 2))] = np.eye(3, 4)
    return chained


def transform_cloud(cloud: GaussianCloud, matrix: Floats) -> GaussianCloud:
    """Return the cloud under one affine map: positions, covariances and colours.

    Parameters
    ----------
    cloud : N splats
    matrix : (3, 4) or (4, 4); turns, non-uniform scales, shears and mirrors are all legal

    Notes
    -----
    Covariances become ``A Sigma A^T`` exactly. Colours turn by the rotation nearest to A; under a mirror
    this is the nearest proper rotation, so that view-dependent detail is turned but not mirrored. The
    identity returns equal arrays.

    Raises
    ------
    RigError : the matrix holds a value that is not finite
    """
    matrix = np.asarray(matrix, dtype=np.float64)[:3]
    if not np.isfinite(matrix).all():
        raise RigError(
            "The object's matrix holds a value that is not finite; clear its transform and try again"
        )
    linear, offset = matrix[:, :3], matrix[:, 3]
    moved = cloud.positions @ linear.T + offset
    positions = moved.astype(cloud.positions.dtype, copy=False)
    everywhere = np.broadcast_to(linear.astype(cloud.rotations.dtype), (len(cloud), 3, 3))
    shapes = deform_shapes(cloud.rotations, cloud.scales, None, everywhere)
    sh = cloud.sh.copy()
    if len(cloud) and not np.array_equal(linear, np.eye(3)):
        sh = rotate_sh(sh, polar_rotation(linear[None])[0])
    return GaussianCloud(positions, shapes.rotations, shapes.scales, cloud.opacities.copy(), sh)
