"""Causal keys: what a frame's pose, its recent past and the motion of the root say, as numbers.

A key is invariant to where the subject stands and which way it faces, and knows nothing of the future, so the
same key serves a whole action and a live pose with its history. It holds, for one instant t,

- the local rotations of the joints (matrices) and, in the frame of the main joint, the positions of all
  joints and the direction of world up;
- the change of each of these since t - 1/15 s and t - 6/15 s, and its second differences over steps of 1/15 s
  and 2/15 s: cloth feels acceleration (before the start of a clip the pose is held);
- turning about up, velocity and accelerations of the root in its own frame, and velocity, accelerations, turn
  and its change of the main joint in its own.

A capture slower than 15 frames a second is looked at frame by frame instead. Columns come in groups (joint x
kind x lag), so that a relevance can be learned for each.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..rigging.skeleton.kinematics import joint_transforms
from ..rotations import normalize_quaternions

F64 = NDArray[np.float64]
F32 = NDArray[np.float32]

TICK = 1 / 15  # s, least unit of the lags
LAGS = (0, 1, 2, 4, 6)  # ticks ago at which a pose is looked up
CHANGES = np.array(  # weights of the poses at those lags, one row a kind of change
    [
        [1, -1, 0, 0, 0],
        [1, -2, 1, 0, 0],
        [1, 0, -2, 1, 0],
        [1, 0, 0, 0, -1],
    ]
)
MOTIONS = 9  # groups of root and main joint motion
STILL = 1e-3  # of the skeleton's size (or of a unit rotation entry): less movement is noise


@dataclass(frozen=True)
class KeyLayout:
    """Which columns a key has.

    parents : (J,) parents before children; joint_positions : (J, 3) at rest, metres
    main_joint : joint in whose frame positions are seen; up : (3,) unit, world up
    rotation_joints, position_joints : joints whose local rotations and positions are part of the key
    tick : s, unit of the lags: 1/15, or the time between frames of a slower capture, whose changes within a
        frame are not known
    """

    parents: NDArray[np.int32]
    joint_positions: F64
    main_joint: int
    up: F64
    rotation_joints: NDArray[np.int32]
    position_joints: NDArray[np.int32]
    tick: float = TICK

    @property
    def history(self) -> float:
        """Seconds of the past that a key depends on."""
        return max(LAGS) * self.tick

    @property
    def size(self) -> float:
        """Length that positions are measured by: the diagonal of the skeleton's box, or 1."""
        return float(np.linalg.norm(np.ptp(self.joint_positions, axis=0))) or 1.0


def moving_layout(
    parents: NDArray[np.integer],
    joint_positions: F64,
    main_joint: int,
    up: F64,
    rotations: NDArray[np.floating],
    fps: float = 1 / TICK,
) -> KeyLayout:
    """Layout with the joints that turn or move within poses (F, J, 4) at `fps`; the root does not count."""
    everything = np.arange(len(parents), dtype=np.int32)
    layout = KeyLayout(
        np.asarray(parents, np.int32),
        np.asarray(joint_positions, np.float64),
        int(main_joint),
        np.asarray(up, np.float64),
        everything,
        everything,
        max(TICK, 1 / fps),
    )
    matrices, positions, _ = _channels(
        layout, np.asarray(rotations, np.float64), np.zeros((len(rotations), 3))
    )
    turns = matrices.std(axis=0).max(axis=(-1, -2)) > 10 * STILL
    turns[np.asarray(parents) < 0] = False
    moves = positions.std(axis=0).max(axis=-1) > STILL
    return replace(layout, rotation_joints=everything[turns], position_joints=everything[moves])


def motion_keys(
    layout: KeyLayout,
    rotations: NDArray[np.floating],
    root_translations: NDArray[np.floating],
    times: NDArray[np.floating],
    clips: NDArray[np.integer] | None = None,
    rows: NDArray[np.integer] | None = None,
) -> F32:
    """Keys of frames.

    Parameters
    ----------
    rotations : (F, J, 4) local quaternions wxyz; signs do not matter
    root_translations : (F, 3) displacement of the root from rest, metres
    times : (F,) seconds, increasing within a clip
    clips : (F,) int, clip of each frame, frames of a clip side by side; None: one clip
    rows : frames whose keys are wanted; None: all

    Returns
    -------
    (len(rows), D) float32, columns as `key_groups` numbers them; positions in units of the skeleton's size.
    """
    before, after, share = _lookups(np.asarray(times, np.float64), clips, rows, layout.tick)
    turns = normalize_quaternions(np.asarray(rotations, np.float64))
    places = np.asarray(root_translations, np.float64)
    first, second = turns[before], turns[after]
    second = np.where((first * second).sum(axis=-1, keepdims=True) < 0, -second, second)
    sampled = np.asarray(normalize_quaternions(first + share[..., None, None] * (second - first)), np.float64)
    matrices, positions, posed = _channels(
        layout, sampled, places[before] + share[..., None] * (places[after] - places[before])
    )
    lags, count = before.shape
    up = np.swapaxes(posed[:, :, layout.main_joint, :, :3], -1, -2) @ layout.up
    parts = (
        matrices[:, :, layout.rotation_joints].reshape(lags, count, -1),
        positions[:, :, layout.position_joints].reshape(lags, count, -1),
        up,
    )
    pose = np.concatenate(parts, axis=-1)
    changes = np.tensordot(CHANGES, pose, axes=1)
    return np.concatenate([pose[0], *changes, *_motions(layout, posed)], axis=-1).astype(np.float32)


def key_groups(layout: KeyLayout) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """How the columns of a key hang together.

    Returns
    -------
    groups : (D,) group of each column, 0..G-1
    channels : (G,) channel of each group: one a joint's rotation, one a joint's position (mirrored joints
        share theirs), one for up, one for each motion of root and main joint
    kinds : (G,) 0 pose, 1.. changes, last: motions of root and main joint
    """
    twins = mirrored_joints(layout.parents, layout.joint_positions)
    joints = len(twins)
    pose = np.concatenate(
        [twins[layout.rotation_joints], joints + twins[layout.position_joints], [2 * joints]]
    )
    widths = [9] * len(layout.rotation_joints) + [3] * len(layout.position_joints) + [3]
    slices = 1 + len(CHANGES)
    motions = 2 * joints + 1 + np.arange(MOTIONS)
    channels = np.concatenate([*[pose] * slices, motions])
    widths = widths * slices + [2] + [3] * (MOTIONS - 1)
    kinds = np.concatenate([np.repeat(np.arange(slices), len(pose)), np.full(MOTIONS, slices)])
    return np.repeat(np.arange(len(widths)), widths), np.unique(channels, return_inverse=True)[1], kinds


def mirrored_joints(
    parents: NDArray[np.integer], positions: F64, tolerance: float = 0.05
) -> NDArray[np.intp]:
    """(J,) the first of the joints that mirror each other: siblings whose subtrees have equal bone lengths.

    Bone lengths do not depend on the mirror plane nor on the rest pose, so none has to be found.
    """
    parents = np.asarray(parents)
    children = [np.flatnonzero(parents == j).tolist() for j in range(len(parents))]
    lengths = np.linalg.norm(positions - positions[np.maximum(parents, 0)], axis=-1)
    twins = np.arange(len(parents))

    def alike(a: int, b: int) -> bool:
        if abs(lengths[a] - lengths[b]) > tolerance * max(lengths[a], lengths[b]):
            return False
        same = len(children[a]) == len(children[b])
        return same and all(alike(c, d) for c, d in zip(children[a], children[b], strict=True))

    def join(a: int, b: int) -> None:
        twins[b] = twins[a]
        for c, d in zip(children[a], children[b], strict=True):
            join(c, d)

    for siblings in children:
        for i, a in enumerate(siblings):
            for b in siblings[i + 1 :]:
                if twins[a] == a and twins[b] == b and alike(a, b):
                    join(a, b)
    return twins


def _lookups(
    times: F64, clips: NDArray[np.integer] | None, rows: NDArray[np.integer] | None, tick: float
) -> tuple[NDArray[np.intp], NDArray[np.intp], F64]:
    """Frames before and after (L, R) each instant looked up, and how far it lies between them, 0..1."""
    count = len(times)
    opens = np.zeros(count, bool)
    opens[0] = True
    if clips is not None:
        opens[1:] = np.diff(clips) != 0
    first = np.maximum.accumulate(np.where(opens, np.arange(count), 0))
    step = np.diff(times, prepend=times[0])
    axis = np.cumsum(np.where(opens, 1.0, np.maximum(step, 1e-9)))  # one increasing clock for all clips
    rows = np.arange(count) if rows is None else np.asarray(rows)
    wanted = np.maximum(axis[rows] - tick * np.array(LAGS)[:, None], axis[first[rows]])
    before = np.clip(np.searchsorted(axis, wanted + 1e-9, side="right") - 1, first[rows], rows)
    after = np.minimum(before + 1, rows)
    gap = np.maximum(axis[after] - axis[before], 1e-12)
    return before, after, np.clip((wanted - axis[before]) / gap, 0.0, 1.0)


def _channels(layout: KeyLayout, rotations: F64, root_translations: F64) -> tuple[F64, F64, F64]:
    """Local rotations (..., J, 3, 3), positions seen from the main joint (..., J, 3), joint transforms."""
    posed = joint_transforms(layout.parents, layout.joint_positions, rotations, root_translations)
    world = np.matvec(posed[..., :3], layout.joint_positions) + posed[..., 3]
    main = posed[..., layout.main_joint, :, :]
    seen = (world - world[..., layout.main_joint, None, :]) @ main[..., :3]
    turns = posed[..., :3]
    parent = np.maximum(layout.parents, 0)
    return np.swapaxes(turns[..., parent, :, :], -1, -2) @ turns, seen / layout.size, posed


def _motions(layout: KeyLayout, posed: F64) -> list[F64]:
    """Motions of the root and the main joint in their own frames, a tick as the unit of time."""
    root = int(np.argmin(layout.parents))
    root_up = np.swapaxes(posed[:2, :, root, :, :3], -1, -2) @ layout.up
    yaw = (_turns(posed, root) * root_up).sum(axis=-1).T
    turn, earlier = _turns(posed, layout.main_joint)
    return [
        yaw,
        *_travel(layout, posed, root),
        *_travel(layout, posed, layout.main_joint),
        turn,
        turn - earlier,
    ]


def _travel(layout: KeyLayout, posed: F64, joint: int) -> list[F64]:
    """Velocity and accelerations over steps of one and two ticks (R, 3) of a joint, in its own frame."""
    frames = posed[:4, :, joint]  # now, and one, two and four ticks ago
    place = (np.matvec(frames[..., :3], layout.joint_positions[joint]) + frames[..., 3]) / layout.size
    own = np.swapaxes(frames[0, :, :, :3], -1, -2)
    return [np.matvec(own, np.tensordot(weights[:4], place, axes=1)) for weights in CHANGES[:3]]


def _turns(posed: F64, joint: int) -> F64:
    """Turn of a joint over the last tick and over the one before (2, R, 3), rotation vectors of small turns
    in its own frame."""
    frames = posed[:3, :, joint, :, :3]
    delta = np.swapaxes(frames[1:], -1, -2) @ frames[:2]
    return np.stack(
        [
            delta[..., 2, 1] - delta[..., 1, 2],
            delta[..., 0, 2] - delta[..., 2, 0],
            delta[..., 1, 0] - delta[..., 0, 1],
        ],
        axis=-1,
    )
