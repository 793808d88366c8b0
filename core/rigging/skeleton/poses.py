"""Joint rotations fitted to the capture, in the conventions of `kinematics`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...progress import Progress, no_progress
from ...rotations import (
    axis_angle_to_quaternion,
    quaternion_to_matrix,
)
from ..kabsch import kabsch
from .kinematics import Poses, skinning_transforms
from .lbs_statistics import LbsStatistics
from .tree import KinematicTree

F64 = NDArray[np.float64]
_FRAME_BLOCK = 128


def pose_design(tree: KinematicTree, bone_joints: NDArray[np.integer]) -> F64:
    """Matrix (4B, 3J + 1) that turns bone features phi into the rest vectors each joint rotates, and one.

    A skinned point is linear in the global rotations and the posed root: ``y = t + sum_a Rg_a z_a`` with
    ``z = phi @ design``: a joint rotates the points of its own bones about itself, and for the bones below it
    the offset to the next joint down the chain. `tree.positions` must be in the statistics' units.
    """
    joints, bones = len(tree), len(bone_joints)
    design = np.zeros((bones, 4, joints * 3 + 1))
    axes = np.arange(3)
    for bone, joint in enumerate(bone_joints):
        design[bone, axes, 3 * joint + axes] = 1
        design[bone, 3, 3 * joint + axes] = -tree.positions[joint]
        design[bone, 3, -1] = 1
        while (parent := tree.parents[joint]) >= 0:
            design[bone, 3, 3 * parent + axes] += tree.positions[joint] - tree.positions[parent]
            joint = parent
    return design.reshape(4 * bones, -1)


def initial_rotations(stats: LbsStatistics, tree: KinematicTree, bone_joints: NDArray[np.integer]) -> F64:
    """Global rotations (F, J, 3, 3): the weighted Kabsch rotation of the points each joint drives.

    A joint that drives none takes its parent's; one that drives a line or a point takes what is left free
    from it.
    """
    bones = stats.bone_count
    blocks = stats.gram.reshape(bones, 4, bones, 4).sum(axis=2)  # (B, 4, 4): sum w x x^T with x homogeneous
    cross = stats.cross.reshape(len(stats.cross), 3, bones, 4)
    rotations = np.empty((len(cross), len(tree), 3, 3))
    for joint, parent in enumerate(tree.parents):
        mine = bone_joints == joint
        block, moved = blocks[mine].sum(axis=0), cross[:, :, mine].sum(axis=2)  # (4, 4), (F, 3, 4)
        mass = max(block[3, 3], 1e-12)
        moment = moved[:, :, :3] - moved[:, :, 3:] * (block[3, :3] / mass)  # sum w (y - ybar) (x - xbar)^T
        spread = max(np.trace(block[:3, :3]) - block[3, :3] @ block[3, :3] / mass, 0.0)
        if parent >= 0:
            moment = moment + (1e-3 * spread + 1e-9) * rotations[:, parent]
        rotations[:, joint] = kabsch(np.swapaxes(moment, -1, -2))
    return rotations


@dataclass(frozen=True)
class _Quadric:
    """``E_f(R) = energy - 2 <R, linear> + <R^T R, quadratic>`` with the root's posed position eliminated."""

    quadratic: F64  # (3J, 3J)
    linear: F64  # (F, 3, 3J)
    energy: F64  # (F,)
    offset_row: F64  # (3J,) t = offset_base - R offset_row
    offset_base: F64  # (F, 3)

    def take(self, frames: slice) -> _Quadric:
        return _Quadric(
            self.quadratic,
            self.linear[frames],
            self.energy[frames],
            self.offset_row,
            self.offset_base[frames],
        )

    def value(self, flat: F64) -> F64:
        """Squared error (F,) of rotations laid side by side (F, 3, 3J)."""
        products = np.einsum("fai,fai->f", flat @ self.quadratic - 2 * self.linear, flat)
        return self.energy + products


def _quadric(
    stats: LbsStatistics,
    tree: KinematicTree,
    bone_joints: NDArray[np.integer],
    stiffness: float,
    offsets: F64 | None,
) -> _Quadric:
    design = pose_design(tree, bone_joints)
    gram, cross = design.T @ stats.gram @ design, stats.cross @ design
    mass = gram[-1, -1]
    if offsets is None:
        row, base = gram[:-1, -1] / mass, cross[..., -1] / mass
        quadratic = gram[:-1, :-1] - mass * np.outer(row, row)
        linear = cross[..., :-1] - mass * base[..., None] * row
        energy = stats.energy - mass * np.einsum("fa,fa->f", base, base)
    else:
        row, base = np.zeros(len(gram) - 1), offsets
        quadratic = gram[:-1, :-1].copy()
        linear = cross[..., :-1] - base[..., None] * gram[:-1, -1]
        energy = stats.energy + np.einsum("fa,fa->f", mass * base - 2 * cross[..., -1], base)
    quadratic += stiffness * stats.point_count * np.kron(_tree_laplacian(tree), np.eye(3))
    return _Quadric(quadratic, linear, energy, row, base)


def _tree_laplacian(tree: KinematicTree) -> F64:
    """Graph Laplacian (J, J) of the tree: ``sum |R_j - R_parent|^2`` as a quadratic form."""
    laplacian = np.zeros((len(tree), len(tree)))
    for joint, parent in enumerate(tree.parents):
        if parent >= 0:
            laplacian[[joint, parent], [joint, parent]] += 1
            laplacian[[joint, parent], [parent, joint]] -= 1
    return laplacian


def fit_poses(
    stats: LbsStatistics,
    tree: KinematicTree,
    bone_joints: NDArray[np.integer],
    initial: F64 | None = None,
    *,
    iterations: int = 30,
    stiffness: float = 1e-7,
    free: NDArray[np.bool_] | None = None,
    offsets: F64 | None = None,
    progress: Progress = no_progress,
) -> Poses:
    """Fit joint rotations and root translations of every frame to the points by inverse kinematics.

    Minimises the squared error of the points skinned by the skeleton alone, plus `stiffness` (per point,
    in units of the squared box diagonal) times ``sum |Rg_j - Rg_parent|^2``, which settles what the
    points leave free (a thin limb's twist, a joint that drives nothing). Levenberg-Marquardt on rotation
    vectors applied on the left of the global rotations, batched over frames; every step costs O(J^2),
    whatever the number of points.

    Parameters
    ----------
    stats : sums over the points
    tree : joints, in the statistics' units
    bone_joints : (B,) joint that carries each bone
    initial : (F, J, 3, 3) global rotations to start from, else `initial_rotations`
    free : (J,) joints that may turn, the others keep their initial global rotations; None: all
    offsets : (F, 3) where the root joint is, in the statistics' units; None: fitted
    """
    start = initial_rotations(stats, tree, bone_joints) if initial is None else initial
    quadric = _quadric(stats, tree, bone_joints, stiffness, offsets)
    chosen = np.arange(3 * len(tree)) if free is None else np.flatnonzero(np.repeat(free, 3))
    rotations = start.copy()
    for first in range(0, len(start) if len(chosen) else 0, _FRAME_BLOCK):
        progress("Joint poses", first / len(start))
        block = slice(first, first + _FRAME_BLOCK)
        rotations[block] = _levenberg_marquardt(quadric.take(block), start[block], chosen, iterations)
    offsets = quadric.offset_base - _side_by_side(rotations) @ quadric.offset_row
    return Poses(rotations, offsets)


def _side_by_side(rotations: F64) -> F64:
    """(F, 3, 3J) of (F, J, 3, 3)."""
    return np.moveaxis(rotations, 1, 2).reshape(len(rotations), 3, -1)


def _levenberg_marquardt(quadric: _Quadric, rotations: F64, chosen: NDArray[np.intp], iterations: int) -> F64:
    frames, joints = rotations.shape[:2]
    damping = np.full(frames, 1e-4)
    flat = _side_by_side(rotations)
    error = quadric.value(flat)
    diagonal = np.arange(len(chosen))
    active = np.arange(frames)
    for _ in range(iterations):
        part = quadric.take(active)
        gradient, hessian = _normal_equations(part, flat[active])
        if len(chosen) < 3 * joints:
            gradient, hessian = gradient[:, chosen], hessian[:, chosen[:, None], chosen]
        scale = np.einsum("fii->fi", hessian)
        floor = 1e-9 * scale.max(axis=1, keepdims=True) + 1e-300
        hessian[:, diagonal, diagonal] += damping[active, None] * scale + floor
        step = np.zeros((len(active), 3 * joints))
        step[:, chosen] = -np.linalg.solve(hessian, gradient[..., None])[..., 0]
        turned = rotation_exp(step.reshape(-1, joints, 3)) @ rotations[active]
        candidate = _side_by_side(turned)
        new = part.value(candidate)
        better = new < error[active]
        gain = np.where(better, error[active] - new, 0)
        win = active[better]
        rotations = rotations.copy()
        rotations[win], flat[win] = turned[better], candidate[better]
        damping[active] *= np.where(better, 0.2, 8.0)
        done = np.where(better, gain < 1e-5 * error[active] + 1e-16, damping[active] > 1e4)
        error[win] = new[better]
        active = active[~done]
        if not len(active):
            break
    return rotations


def _normal_equations(quadric: _Quadric, flat: F64) -> tuple[F64, F64]:
    """Gradient (F, 3J) and Gauss-Newton Hessian (F, 3J, 3J) of E / 2 in the rotation vectors.

    With u_a = R_a z_a the derivative of the skinned point is ``w_a x u_a``, so both need only the sums
    ``sum r u_a^T`` and ``P_ab = sum u_a u_b^T = R_a Q_ab R_b^T``: H_ab = tr(P_ab) I - P_ab^T.
    """
    frames, joints = len(flat), flat.shape[2] // 3
    rotations = np.moveaxis(flat.reshape(frames, 3, joints, 3), 2, 1)  # (F, J, 3, 3)
    residual = (flat @ quadric.quadratic - quadric.linear).reshape(frames, 3, joints, 3)
    torque = np.einsum("fraj,faij->fari", residual, rotations)  # sum r u^T
    gradient = np.stack(
        [
            torque[..., 2, 1] - torque[..., 1, 2],
            torque[..., 0, 2] - torque[..., 2, 0],
            torque[..., 1, 0] - torque[..., 0, 1],
        ],
        axis=-1,
    )
    half = rotations @ quadric.quadratic.reshape(joints, 3, 3 * joints)  # (F, J, 3, 3J)
    half = half.reshape(frames, joints, 3, joints, 3).swapaxes(2, 3)  # (F, a, b, 3, 3)
    products = half @ np.swapaxes(rotations, -1, -2)[:, None]  # P_ab
    traces = np.einsum("fabii->fab", products)
    hessian = -np.swapaxes(products, -1, -2)
    for axis in range(3):
        hessian[..., axis, axis] += traces
    hessian = hessian.swapaxes(2, 3).reshape(frames, 3 * joints, 3 * joints)
    return gradient.reshape(frames, -1), hessian


def rotation_exp(vectors: F64) -> F64:
    """Rotation matrices (..., 3, 3) of rotation vectors (..., 3), radians."""
    turns = axis_angle_to_quaternion(vectors, np.linalg.norm(vectors, axis=-1))
    return np.asarray(quaternion_to_matrix(turns), np.float64)


def squared_error(stats: LbsStatistics, bone_transforms: F64) -> F64:
    """(F,) squared distance, summed over the points, under bone transforms (F, B, 3, 4)."""
    flat = np.moveaxis(bone_transforms, 1, 2).reshape(len(bone_transforms), 3, -1)
    return np.maximum(stats.energy + np.einsum("fai,fai->f", flat @ stats.gram - 2 * stats.cross, flat), 0)


def better_poses(
    stats: LbsStatistics,
    tree: KinematicTree,
    bone_joints: NDArray[np.integer],
    first: Poses,
    second: Poses,
    gain: float = 0.0,
) -> tuple[Poses, F64]:
    """The better of two fits in each frame, and its squared error (F,), each bone rigid on its joint (B,).

    The second must be better by the share ``gain`` of the error.
    """
    errors = [
        squared_error(stats, skinning_transforms(tree, poses)[:, bone_joints]) for poses in (first, second)
    ]
    better = errors[1] < (1 - gain) * errors[0]
    poses = Poses(
        np.where(better[:, None, None, None], second.rotations, first.rotations),
        np.where(better[:, None], second.offsets, first.offsets),
    )
    return poses, np.where(better, errors[1], errors[0])
