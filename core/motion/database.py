"""The motion database: captured poses of the skeleton, each with the bone motion that came with it.

A query (new poses of the joints) looks keys up, the captured local joint rotations, and takes their values:
the *residual* ``D_b = S_a(b)^-1 T_b`` of an outer bone against the joint that carries it, in coordinates of
the rest pose. Residuals are kept as a rotation and as the offset of the bone's pivot, ``u = D_b x_b - x_b``:
about the pivot the two can be blended apart. A residual on a new pose of the joint, ``S_a(b) D_b``, is the
bone's transform; with the residual of the same pose it is the captured one, and without a residual the bone
follows its joint rigidly.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from ..errors import RigError
from ..rigging.rig import Rig
from ..rigging.skeleton.kinematics import joint_transforms
from ..rotations import affine_inverse, affine_multiply, matrix_to_quaternion, normalize_quaternions
from ..rotations import quaternion_to_matrix as to_matrix
from .parts import SOFTNESS, Parts, skeleton_parts, whole_body
from .timeline import Timeline

F32, F64, I32 = NDArray[np.float32], NDArray[np.float64], NDArray[np.int32]


@dataclass(frozen=True)
class Residuals:
    """Motion of B outer bones against their joints in Q frames.

    rotations : (Q, B, 4) unit quaternions wxyz; offsets : (Q, B, 3) displacement of the pivots, metres
    """

    rotations: NDArray[np.floating]
    offsets: NDArray[np.floating]

    def __len__(self) -> int:
        return len(self.rotations)

    def __getitem__(self, rows: slice | NDArray) -> Residuals:
        return Residuals(self.rotations[rows], self.offsets[rows])

    @staticmethod
    def rigid(frames: int, bones: int) -> Residuals:
        """No motion: every bone follows its joint."""
        return Residuals(np.tile([1.0, 0, 0, 0], (frames, bones, 1)), np.zeros((frames, bones, 3)))


@dataclass(frozen=True)
class MotionDatabase:
    """F captured poses of J joints with the motion of B outer bones, in C clips.

    Rows are frames at a steady rate within a clip; the frames of a clip are contiguous.

    parents : (J,) int32, parents before children, -1 for the root (joint 0)
    joint_positions : (J, 3) float64, rest positions, metres
    rotations : (F, J, 4) float32, unit quaternions wxyz, local, identity at rest: the keys
    root_translations : (F, 3) float64, displacement of the root joint from its rest position
    clips : (F,) int32, clip of each frame, 0..C-1, not falling
    captured : (F,) bool, False where a frame was missing in the capture and is interpolated
    fps : frames a second
    up : (3,) float64, unit vector that points up
    bone_joints : (B,) int32, joint that carries each outer bone
    pivots : (B, 3) float64, weighted centroid of each bone's points at rest
    masses : (B,) float64, sum of each bone's weights
    spreads : (B, 3, 3) float64, sum of w (x - pivot) (x - pivot)^T over the bone's points: with `masses` they
        turn a difference of residuals into squared distance of points
    residual_rotations : (F, B, 4) float32, residual_offsets : (F, B, 3) float32: the values
    parts : P arrays of joints that are matched together
    part_leaders : (P,) int32, the joint each part is about
    bone_parts : (P, B) float32, weight of each part for each bone, columns sum to 1
    """

    parents: I32
    joint_positions: F64
    rotations: F32
    root_translations: F64
    clips: I32
    captured: NDArray[np.bool_]
    fps: float
    up: F64
    bone_joints: I32
    pivots: F64
    masses: F64
    spreads: F64
    residual_rotations: F32
    residual_offsets: F32
    parts: Parts
    part_leaders: I32
    bone_parts: F32

    @property
    def frame_count(self) -> int:
        """Number of frames F."""
        return len(self.rotations)

    @property
    def bone_count(self) -> int:
        """Number of outer bones B."""
        return len(self.bone_joints)

    @property
    def joint_count(self) -> int:
        """Number of joints J."""
        return len(self.parents)

    @property
    def clip_count(self) -> int:
        """Number of clips C."""
        return int(self.clips[-1]) + 1

    @property
    def residuals(self) -> Residuals:
        """The values of all frames."""
        return Residuals(self.residual_rotations, self.residual_offsets)

    @property
    def nbytes(self) -> int:
        """Memory the arrays take, bytes."""
        rows = (np.asarray(getattr(self, field.name)) for field in fields(self) if field.name != "parts")
        return sum(a.nbytes for a in (*rows, *self.parts))


def build_database(
    rig: Rig,
    clips: NDArray[np.integer] | None = None,
    up: NDArray[np.floating] | None = None,
    softness: float = SOFTNESS,
) -> MotionDatabase:
    """Build the database of a rig's own capture.

    Parameters
    ----------
    clips : (F,) motion each of the rig's poses belongs to, any integers; None: one motion
    up : (3,) direction that points up in the capture's axes; None: y
    softness : see `parts.skeleton_parts`

    Short gaps in `rig.frames` (missing frames of the capture) are filled by interpolation, so that time runs
    steadily in a clip; at longer ones the clip is split.
    """
    masses, pivots, spreads = _bone_moments(rig)
    affinity = rig.bone_affinity
    if affinity is None:
        affinity = np.eye(rig.joint_count, dtype=np.float32)[rig.bone_joints]
    parts, leaders, bone_parts = skeleton_parts(rig.joint_parents, affinity, softness)
    up = np.array([0.0, 1.0, 0.0]) if up is None else np.asarray(up, np.float64)
    empty = MotionDatabase(
        parents=rig.joint_parents,
        joint_positions=rig.joint_positions,
        rotations=np.zeros((0, rig.joint_count, 4), np.float32),
        root_translations=np.zeros((0, 3)),
        clips=np.zeros(0, np.int32),
        captured=np.zeros(0, bool),
        fps=rig.fps,
        up=up / np.linalg.norm(up),
        bone_joints=rig.bone_joints,
        pivots=pivots,
        masses=masses,
        spreads=spreads,
        residual_rotations=np.zeros((0, rig.bone_count, 4), np.float32),
        residual_offsets=np.zeros((0, rig.bone_count, 3), np.float32),
        parts=parts,
        part_leaders=leaders,
        bone_parts=bone_parts,
    )
    return extend_database(
        empty, rig.joint_rotations, rig.root_translations, rig.bone_transforms, clips, rig.frames
    )


def extend_database(
    database: MotionDatabase,
    rotations: NDArray[np.floating],
    root_translations: NDArray[np.floating],
    transforms: NDArray[np.floating],
    clips: NDArray[np.integer] | None = None,
    frames: NDArray[np.integer] | None = None,
) -> MotionDatabase:
    """Add another capture of the same asset; the rows there are stay as they are.

    Parameters
    ----------
    rotations : (G, J, 4) local joint rotations; root_translations : (G, 3)
    transforms : (G, B, 3, 4) of the same outer bones, rest -> posed
    clips : (G,) motion of each frame, any integers (they are counted on from the clips there are); None: one
    frames : (G,) index of each frame in time, rising within a clip; None: no frame is missing

    Raises
    ------
    RigError : the joints or bones are not as many as the database's
    """
    rotations = normalize_quaternions(np.asarray(rotations, np.float64))
    transforms = np.asarray(transforms, np.float64)
    count = len(rotations)
    if rotations.shape[1:] != (database.joint_count, 4) or transforms.shape[:2] != (
        count,
        database.bone_count,
    ):
        raise RigError(
            f"The capture has {rotations.shape[1]} joints and {transforms.shape[1]} bones, the motion "
            f"database {database.joint_count} and {database.bone_count}; rig both captures together."
        )
    values = residuals_of(database, rotations, root_translations, transforms)
    timeline = Timeline.of(
        np.zeros(count, np.int32) if clips is None else np.asarray(clips),
        np.arange(count) if frames is None else np.asarray(frames),
    )
    first = int(database.clips[-1]) + 1 if database.frame_count else 0
    added = {
        "rotations": timeline.fill_rotations(rotations).astype(np.float32),
        "root_translations": timeline.fill(np.asarray(root_translations, np.float64)),
        "clips": (timeline.clips + first).astype(np.int32),
        "captured": timeline.captured,
        "residual_rotations": timeline.fill_rotations(values.rotations).astype(np.float32),
        "residual_offsets": timeline.fill(values.offsets).astype(np.float32),
    }
    return replace(
        database, **{name: np.concatenate([getattr(database, name), rows]) for name, rows in added.items()}
    )


def full_body(database: MotionDatabase) -> MotionDatabase:
    """The database with the whole body as the only part."""
    parts, leaders, bone_parts = whole_body(database.joint_count, database.bone_count)
    return replace(database, parts=parts, part_leaders=leaders, bone_parts=bone_parts)


def residuals_of(
    database: MotionDatabase,
    rotations: NDArray[np.floating],
    root_translations: NDArray[np.floating],
    transforms: NDArray[np.floating],
) -> Residuals:
    """Residuals (Q, B) of bone transforms (Q, B, 3, 4) against poses (Q, J, 4), (Q, 3), float64."""
    joints = _carriers(database, rotations, root_translations)
    local = affine_multiply(affine_inverse(joints), np.asarray(transforms, np.float64))
    offsets = np.einsum("qbij,bj->qbi", local[..., :3], database.pivots) + local[..., 3] - database.pivots
    return Residuals(matrix_to_quaternion(local[..., :3]), offsets)


def bone_transforms(
    database: MotionDatabase,
    residuals: Residuals,
    rotations: NDArray[np.floating],
    root_translations: NDArray[np.floating],
) -> F64:
    """Transforms (Q, B, 3, 4) float64, rest -> posed, of the outer bones under poses of the joints.

    Parameters
    ----------
    residuals : of Q frames
    rotations : (Q, J, 4) local quaternions wxyz; root_translations : (Q, 3) metres
    """
    turn = to_matrix(np.asarray(residuals.rotations, np.float64))
    shift = database.pivots + residuals.offsets - np.einsum("qbij,bj->qbi", turn, database.pivots)
    local = np.concatenate([turn, shift[..., None]], axis=-1)
    return affine_multiply(_carriers(database, rotations, root_translations), local)


def repaired_rotations(rotations: NDArray[np.floating]) -> F64:
    """Query rotations (Q, J, 4) as unit quaternions; one that is not finite takes that of the frame before
    it (the first: the identity)."""
    q = np.asarray(rotations, np.float64)
    usable = np.isfinite(q).all(axis=-1) & (np.abs(q).max(axis=-1) > 0)  # (Q, J)
    if not usable.all():
        row = np.maximum.accumulate(np.where(usable, np.arange(len(q))[:, None], -1), axis=0)
        q = np.take_along_axis(q, np.maximum(row, 0)[..., None], axis=0)
    return normalize_quaternions(q)


def _carriers(
    database: MotionDatabase, rotations: NDArray[np.floating], root_translations: NDArray[np.floating]
) -> F64:
    """(Q, B, 3, 4) transforms of the joint that carries each bone."""
    turns, places = np.asarray(rotations, np.float64), np.asarray(root_translations, np.float64)
    joints = joint_transforms(database.parents, database.joint_positions, turns, places)
    return joints[:, database.bone_joints]


def _bone_moments(rig: Rig) -> tuple[F64, F64, F64]:
    """Mass (B,), pivot (B, 3) and spread (B, 3, 3) of each bone's points at rest."""
    bones, rest = rig.bone_count, rig.rest.astype(np.float64)
    bone, weight = rig.indices.T.ravel(), rig.weights.T.ravel().astype(np.float64)
    points = np.tile(rest, (rig.indices.shape[1], 1))
    masses = np.bincount(bone, weight, minlength=bones)
    share = weight / np.where(masses > 0, masses, 1)[bone]
    pivots = np.stack([np.bincount(bone, share * x, minlength=bones) for x in points.T], axis=1)
    pivots[masses == 0] = rig.joint_positions[rig.bone_joints[masses == 0]]
    arms = points - pivots[bone]
    products = (weight[:, None, None] * arms[:, :, None] * arms[:, None, :]).reshape(-1, 9)
    spreads = np.stack([np.bincount(bone, x, minlength=bones) for x in products.T], axis=1)
    return masses, pivots, spreads.reshape(bones, 3, 3)
