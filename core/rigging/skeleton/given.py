"""The skeleton a capture brings with it as that of the rig: binding, poses, and what of it is of no use.

No pose is fitted: joints turn as they are said to turn, relative to the rig's rest pose, which is a frame of
the capture and not the skeleton's own rest pose. Scale and stretch of joints are left out, as a rig's joints
only turn; the root also moves.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...errors import RigError
from ...given_skeleton import GivenSkeleton
from ...progress import Progress, no_progress
from ...rotations import affine_inverse, affine_multiply
from ..decomposition.ssdr import SkinningDecomposition
from ..kabsch import kabsch
from ..rig import Rig
from .binding import nearby_joints, rebind
from .given_tree import mend_tree
from .kinematics import joint_transforms, local_quaternions
from .lbs_statistics import LbsStatistics, lbs_statistics
from .motion_affinity import motion_affinity
from .poses import squared_error
from .skeleton import Skeleton
from .tree import KinematicTree

F64 = NDArray[np.float64]
# RMS gain, of the diagonal, for a bone's own points, that is worth another joint than the one its points move
# with, taken one by one.
WORTH = 5e-3


def bind_skeleton(
    given: GivenSkeleton,
    canonical: int,
    frames: NDArray[np.integer],
    rest: NDArray[np.floating],
    positions: NDArray[np.floating],
    skin: SkinningDecomposition,
    progress: Progress = no_progress,
) -> Skeleton:
    """Bind outer bones to the joints of a given skeleton, whose poses become the rig's.

    Parameters
    ----------
    given : in all frames of the capture; canonical : the frame that is the rest pose
    frames : (F,) frames of the capture that are used
    rest : (N, 3), positions : (F, N, 3) points in the canonical frame and the frames used
    skin : outer bones
    """
    bind = _rigid(given)[canonical]
    pivots = np.einsum("jab,jb->ja", bind[..., :3], given.rest) + bind[..., 3]
    motions = _from_bind(given, bind)[frames]
    all_joints = KinematicTree(pivots, given.parents)
    affinity, costs = motion_affinity(all_joints, motions, rest, positions, skin, progress=progress)
    tree, kept, notes, sliding = mend_tree(given.names, all_joints, motions, affinity, rest)
    affinity = affinity[:, kept]
    affinity[affinity.sum(axis=1) == 0, 0] = 1
    affinity /= affinity.sum(axis=1, keepdims=True)
    rotations, moves = _local_poses(tree, motions[:, kept])
    stats = lbs_statistics(rest, positions, skin.indices, skin.weights, len(affinity))
    transforms = stats.to_units(joint_transforms(tree.parents, tree.positions, rotations, moves))
    binding, error = bind_bones(stats, tree, transforms, affinity, costs[:, kept])
    return Skeleton(
        tree=tree,
        names=tuple(given.names[j] for j in kept),
        bone_joints=binding,
        affinity=affinity,
        rotations=rotations,
        root_translations=moves,
        rmse=error * stats.scale,
        notes=notes,
        bind=bind[kept],
        sliding=sliding,
    )


def bind_bones(
    stats: LbsStatistics, tree: KinematicTree, transforms: F64, affinity: F64, costs: F64
) -> tuple[NDArray[np.int32], float]:
    """Joint (B,) of each outer bone, and the root mean square error of the replay, of the box diagonal."""
    start = costs.argmin(axis=1)
    allowed = nearby_joints(tree, affinity, leaves=True)
    allowed[np.arange(len(start)), start] = True
    least = len(transforms) * stats.bone_masses * WORTH**2
    binding = rebind(stats, transforms, start, allowed, least_gain=least)
    error = squared_error(stats, transforms[:, binding]).sum() / (stats.point_count * len(transforms))
    return binding, float(np.sqrt(error))


def given_poses(rig: Rig, skeleton: GivenSkeleton) -> tuple[F64, F64]:
    """Poses of a rig's joints in the frames of the skeleton it was built on, or of one with the same rest.

    Parameters
    ----------
    rig : built on a given skeleton
    skeleton : with joints of the same names and the same rest pose, in any F frames

    Returns
    -------
    rotations : (F, J, 4) local quaternions wxyz relative to the rig's rest pose
    root_translations : (F, 3)

    Raises
    ------
    RigError : the rig was built without a given skeleton, or the skeleton lacks one of its joints
    """
    if rig.joint_bind is None:
        raise RigError("The rig has a skeleton of its own, so the capture's skeleton does not pose it.")
    places = {name: joint for joint, name in enumerate(skeleton.names)}
    missing = [name for name in rig.joint_names if name not in places]
    if missing:
        raise RigError(f"The capture's skeleton has no joint called '{missing[0]}', which the rig has.")
    chosen = [places[name] for name in rig.joint_names]
    picked = GivenSkeleton(
        rig.joint_names, rig.joint_parents, skeleton.rest[chosen], skeleton.joint_mats[:, chosen]
    )
    return _local_poses(
        KinematicTree(rig.joint_positions, rig.joint_parents), _from_bind(picked, rig.joint_bind)
    )


def skeleton_in_frames(rig: Rig, skeleton: GivenSkeleton, frame_count: int) -> GivenSkeleton:
    """The skeleton a rig was built on, with the rig's own poses in frames beyond those it has.

    Joints that the rig has not follow the one above them; frames without a pose stand as the rig at rest.

    Parameters
    ----------
    rig : with ``joint_bind``; skeleton : in the first frames of the capture; frame_count : of all
    """
    assert rig.joint_bind is not None
    first, places = skeleton.frame_count, {name: joint for joint, name in enumerate(rig.joint_names)}
    motions = np.tile(np.eye(3, 4), (frame_count - first, rig.joint_count, 1, 1))
    more = rig.frames >= first
    motions[rig.frames[more] - first] = joint_transforms(
        rig.joint_parents, rig.joint_positions, rig.joint_rotations[more], rig.root_translations[more]
    )
    mats = np.asarray(affine_multiply(motions, rig.joint_bind), np.float64)
    followed: list[int] = []
    for name, parent in zip(skeleton.names, skeleton.parents.tolist(), strict=True):
        followed.append(places.get(name, followed[parent] if parent >= 0 else 0))
    return GivenSkeleton(
        skeleton.names,
        skeleton.parents,
        skeleton.rest,
        np.concatenate([skeleton.joint_mats, mats[:, followed]]),
    )


def _rigid(given: GivenSkeleton) -> F64:
    """Transforms (F, J, 3, 4) without scale and shear that take each joint where the given ones do."""
    rotations = kabsch(np.swapaxes(given.joint_mats[..., :3], -1, -2))
    offsets = given.positions() - np.einsum("fjab,jb->fja", rotations, given.rest)
    return np.concatenate([rotations, offsets[..., None]], axis=-1)


def _from_bind(given: GivenSkeleton, bind: F64) -> F64:
    """Motions (F, J, 3, 4) of the joints from the rig's rest pose, which ``bind`` (J, 3, 4) takes them to."""
    return np.asarray(affine_multiply(_rigid(given), affine_inverse(bind)), np.float64)


def _local_poses(tree: KinematicTree, motions: F64) -> tuple[F64, F64]:
    """Local quaternions (F, J, 4) and root displacements (F, 3) of motions (F, J, 3, 4) from rest."""
    root = tree.positions[0]
    moves = motions[:, 0, :, :3] @ root + motions[:, 0, :, 3] - root
    return local_quaternions(tree, motions[..., :3]), moves
