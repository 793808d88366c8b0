"""From the pose of an armature to the joints of its learned motion, and from residuals to skin bones.

What was learned lies in the axes the armature had then. Where its transform was applied since (turned, moved,
scaled evenly), the one similarity that carries the rest bones of then to those of now stands between.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import bpy
import numpy as np
from numpy.typing import NDArray

from ...core.errors import RigError
from ...core.motion.database import MotionDatabase, Residuals
from ...core.rotations import matrix_to_quaternion, quaternion_multiply, quaternion_to_matrix
from ..affine import fit_similarity
from ..armature import JOINT, SKIN_BONE
from ..motion_store import kept_rests

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
UNMOVED = 2e-6  # of the size, and of rotations: what single precision makes of a residual that is none


@dataclass(frozen=True)
class Poses:
    """Poses of joints as the learned motion has them.

    rotations : (H, J, 4) local quaternions wxyz; root_translations : (H, 3) from rest
    """

    rotations: NDArray[np.floating]
    root_translations: F64

    def __len__(self) -> int:
        return len(self.rotations)

    def __getitem__(self, rows: slice) -> Poses:
        return Poses(self.rotations[rows], self.root_translations[rows])


@dataclass(frozen=True)
class RigBones:
    """Where joints and skin bones are among an armature's pose bones. Holds no reference into Blender.

    digest : of the motion; stance : (bones, 4, 4) all rest matrices, as Blender hands them out
    joint_rows : (N,) rows of the joints that have a bone; joints : (N,) their indices, parents first
    skin_rows : (S,) rows of the skin bones that are there; skin : (S,) their indices
    joint_rests : (N, 3, 3), skin_rests : (S, 3, 4) at rest now
    turn, scale, shift : (3, 3), (3,): the similarity from the axes of the motion to those of the armature
    database : that of the motion
    """

    digest: str
    stance: F32
    joint_rows: NDArray[np.intp]
    joints: NDArray[np.intp]
    skin_rows: NDArray[np.intp]
    skin: NDArray[np.intp]
    joint_rests: F64
    skin_rests: F64
    turn: F64
    scale: float
    shift: F64
    database: MotionDatabase

    def fits(self, armature: bpy.types.Object, digest: str) -> bool:
        """Whether bones, rest pose and motion are those of then. Cheap enough for every update."""
        return self.digest == digest and np.array_equal(_stance(armature), self.stance)

    def pose(self, posed: bpy.types.Object) -> Poses:
        """Read the joints (1, J) of an evaluated armature."""
        matrices = np.empty((len(self.stance), 4, 4), np.float32)
        posed.pose.bones.foreach_get("matrix", matrices.ravel())
        stood = matrices[self.joint_rows].astype(np.float64).transpose(0, 2, 1)  # Blender stores columns
        axes = stood[:, :3, :3]
        axes = axes / np.maximum(np.linalg.norm(axes, axis=1, keepdims=True), 1e-12)
        whole = np.tile(np.eye(3), (self.database.joint_count, 1, 1))
        whole[self.joints] = self.turn.T @ axes @ np.swapaxes(self.joint_rests, -1, -2) @ self.turn
        parents = self.database.parents[self.joints]
        local = whole[self.joints]
        inner = parents >= 0
        local[inner] = np.swapaxes(whole[parents[inner]], -1, -2) @ local[inner]
        place = self.turn.T @ (stood[0, :3, 3] - self.shift) / self.scale
        return self.assemble(
            np.asarray(matrix_to_quaternion(local), np.float64)[None],
            (place - self.database.joint_positions[0])[None],
        )

    def from_channels(self, turns: F64, place: F64) -> Poses:
        """Poses of joints from what their bones' own channels say.

        Parameters
        ----------
        turns : (H, N, 4) rotations of the bones, wxyz; place : (H, 3) location of the root's bone
        """
        carry = np.asarray(matrix_to_quaternion(self.turn.T @ self.joint_rests), np.float64)
        local = quaternion_multiply(quaternion_multiply(carry, turns), carry * [1, -1, -1, -1])
        shifts = place @ self.joint_rests[0].T @ self.turn / self.scale
        return self.assemble(np.asarray(local, np.float64), shifts)

    def assemble(self, local: F64, root_translations: F64) -> Poses:
        """Poses of all joints from rotations (H, N, 4) of those with a bone; the others are still."""
        rotations = np.zeros((len(local), self.database.joint_count, 4))
        rotations[..., 0] = 1
        rotations[:, self.joints] = local
        return Poses(rotations, root_translations)

    def channels(self, residuals: Residuals) -> tuple[F64, F64]:
        """Location (Q, S, 3) and rotation (Q, S, 4), w >= 0, of the skin bones for residuals (Q, B)."""
        turns = np.asarray(residuals.rotations, np.float64)[:, self.skin]
        offsets = np.asarray(residuals.offsets, np.float64)[:, self.skin]
        pivots = self.scale * self.database.pivots[self.skin] @ self.turn.T + self.shift
        rests, heads = self.skin_rests[..., :3], self.skin_rests[..., 3]
        carry = np.asarray(matrix_to_quaternion(np.swapaxes(rests, -1, -2) @ self.turn), np.float64)
        local = quaternion_multiply(quaternion_multiply(carry, turns), carry * [1, -1, -1, -1])
        # A residual turns about the pivot and moves it: where that leaves the head of the bone.
        arms = heads - pivots
        swung = np.matvec(quaternion_to_matrix(local), np.einsum("sji,sj->si", rests, arms))
        moved = np.einsum("sji,qsj->qsi", rests, self.scale * offsets @ self.turn.T - arms)
        locations = swung + moved
        rotations = np.asarray(np.where(local[..., :1] < 0, -local, local), np.float64)
        # What single precision cannot tell from rest is rest, so that a rig at rest keeps every bit.
        size = float(np.linalg.norm(np.ptp(pivots, axis=0)))
        still = (np.abs(locations) <= UNMOVED * size).all(axis=-1)
        still &= (np.abs(rotations[..., 1:]) < UNMOVED).all(axis=-1)
        locations[still], rotations[still] = 0.0, (1.0, 0.0, 0.0, 0.0)
        return locations, rotations


def rig_bones(armature: bpy.types.Object, database: MotionDatabase, digest: str) -> RigBones:
    """Find the bones of a learned motion.

    Raises
    ------
    RigError : joints or all skin bones are missing, or joints were moved otherwise than by an Apply of the
        armature's transform
    """
    stance = _stance(armature)
    places = [(row, pose_bone.bone) for row, pose_bone in enumerate(armature.pose.bones)]
    joints = {int(bone[JOINT]): row for row, bone in places if JOINT in bone}
    skin = {int(bone[SKIN_BONE]): row for row, bone in places if SKIN_BONE in bone}
    learned, _ = kept_rests(armature)
    order = sorted(learned)
    edited = RigError(f"The skeleton of '{armature.name}' was edited; refit it or build the rig again")
    if not order or order[0] != 0 or not set(order) <= joints.keys():
        raise edited
    known = [b for b in sorted(skin) if b < database.bone_count]
    if not known:
        raise RigError(f"'{armature.name}' has lost all its skin bones; undo that, or build the rig again")
    joint_rows, skin_rows = _rows(joints, order), _rows(skin, known)
    rests = np.array([bone.matrix_local for _, bone in places], np.float64).reshape(-1, 4, 4)
    moved = fit_similarity(np.array([learned[j] for j in order]), rests[joint_rows])
    if moved is None:
        raise edited
    scale = float(np.cbrt(np.linalg.det(moved[:3, :3])))
    return RigBones(
        digest=digest,
        stance=stance,
        joint_rows=joint_rows,
        joints=np.array(order, np.intp),
        skin_rows=skin_rows,
        skin=np.array(known, np.intp),
        joint_rests=rests[joint_rows, :3, :3],
        skin_rests=rests[skin_rows, :3],
        turn=moved[:3, :3] / scale,
        scale=scale,
        shift=moved[:3, 3],
        database=database,
    )


def _rows(places: dict[int, int], order: list[int]) -> NDArray[np.intp]:
    return np.array([places[index] for index in order], np.intp)


def _stance(armature: bpy.types.Object) -> F32:
    """Rest matrices (bones, 4, 4), as Blender hands them out."""
    bones = cast(bpy.types.Armature, armature.data).bones
    matrices = np.empty((len(bones), 4, 4), np.float32)
    bones.foreach_get("matrix_local", matrices.ravel())
    return matrices
