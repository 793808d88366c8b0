"""A corrected skeleton: the capture's poses solved again, and the outer bones bound anew where it changed.

Outer bones and weights stay, so the capture replays as before; what changes is which joint carries which
outer bone, and how the joints turn. Only what was changed and its neighbours are solved (Levenberg-Marquardt
with the other joints' global rotations held, see `poses.fit_poses`): elsewhere the motion is kept bit by bit.
Of a skeleton that the capture brought the motion is known: there only new joints are solved.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..progress import Progress, no_progress
from ..rotations import normalize_quaternions
from .build import RigReport
from .edited_skeleton import EditedSkeleton, SkeletonEdits
from .refit_binding import Binding, final_affinity, first_bindings
from .rig import Rig
from .skeleton.binding import rebind
from .skeleton.kinematics import Poses, joint_transforms, local_quaternions, skinning_transforms
from .skeleton.lbs_statistics import LbsStatistics, lbs_statistics, replay_statistics
from .skeleton.poses import better_poses, fit_poses, initial_rotations, squared_error
from .skeleton.tree import KinematicTree

F64 = NDArray[np.float64]
FEW_FRAMES = 90  # bones are bound by so many frames, poses fitted to all
ROUNDS = 4


@dataclass(frozen=True)
class Refit:
    """A rig on its corrected skeleton.

    report : errors of the new rig; notes say what the change left without use
    skeleton_rmse_percent_before : the old skeleton's error, as the report's, on the same frames
    edits : what was changed
    """

    rig: Rig
    report: RigReport
    skeleton_rmse_percent_before: float
    edits: SkeletonEdits


def refit_skeleton(
    rig: Rig,
    edited: EditedSkeleton,
    positions: NDArray[np.floating] | None = None,
    progress: Progress = no_progress,
) -> Refit:
    """Solve the capture's poses again for a corrected skeleton.

    Parameters
    ----------
    rig : as it was
    edited : made with `EditedSkeleton.make` for this rig
    positions : (F, N, 3) the capture's points in the rig's frames; None: the rig's own replay stands in

    `Rig.joint_bind` is kept while all joints, by name too, are the given skeleton's, else it is None.

    Raises
    ------
    Cancelled : by `progress`
    """
    progress("Skeleton", 0.0)
    if positions is None:
        stats = replay_statistics(rig.rest, rig.bone_transforms, rig.indices, rig.weights)
    else:
        stats = lbs_statistics(rig.rest, positions, rig.indices, rig.weights, rig.bone_count)
    task = _Task.of(rig, edited, stats)
    binding, poses = _solve(task, progress)
    new = _new_rig(task, binding, poses, progress)
    return Refit(new, _report(task, new), _percent(stats, _carried(stats, rig)), task.edits)


@dataclass(frozen=True)
class _Task:
    """What is given: all poses are in the statistics' units.

    tree : of the edited skeleton; motions : (F, J', 3, 4) of the rig's joints, in metres
    rotations : (F, J, 3, 3) global, to start from: new joints turn with their parents
    free : (J,) joints whose rotations are solved; root : (F, 3) where the root is held, None: solved
    """

    rig: Rig
    edited: EditedSkeleton
    edits: SkeletonEdits
    stats: LbsStatistics
    tree: KinematicTree
    rotations: F64
    free: NDArray[np.bool_]
    root: F64 | None

    @classmethod
    def of(cls, rig: Rig, edited: EditedSkeleton, stats: LbsStatistics) -> _Task:
        edits = SkeletonEdits.of(rig, edited)
        motions = joint_transforms(
            rig.joint_parents, rig.joint_positions, rig.joint_rotations, rig.root_translations
        )
        known = rig.joint_bind is not None
        free = edits.added if known else edits.beside
        root = None
        if edited.origins[0] >= 0 and not free[0]:
            motion = motions[:, edited.origins[0]]
            root = motion[..., :3] @ edited.positions[0] + motion[..., 3] - stats.frame_centers
            root = root / stats.scale
        tree = KinematicTree((edited.positions - stats.center) / stats.scale, edited.parents)
        return cls(rig, edited, edits, stats, tree, _first_rotations(edited, motions), free, root)

    def some_frames(self) -> _Task:
        """The task in a few frames."""
        count = len(self.stats.energy)
        few = np.unique(np.linspace(0, count - 1, min(FEW_FRAMES, count)).round().astype(np.intp))
        return replace(
            self,
            stats=self.stats.take_frames(few),
            rotations=self.rotations[few],
            root=None if self.root is None else self.root[few],
        )

    def fit(self, binding: NDArray[np.integer], iterations: int, progress: Progress) -> tuple[Poses, F64]:
        """Poses under a binding (B,), the better of two starts in each frame, and their errors (F,)."""
        own = initial_rotations(self.stats, self.tree, binding)
        own[:, ~self.free] = self.rotations[:, ~self.free]
        fits = [
            fit_poses(
                self.stats,
                self.tree,
                binding,
                start,
                iterations=iterations,
                free=self.free,
                offsets=self.root,
                progress=progress,
            )
            for start in (self.rotations, own)
        ]
        return better_poses(self.stats, self.tree, binding, *fits, gain=1e-3)


def _first_rotations(edited: EditedSkeleton, motions: F64) -> F64:
    """Global rotations (F, J, 3, 3): those of kept joints; new ones turn with their parents, a new root with
    its first kept descendant."""
    first = int(np.argmax(edited.origins >= 0)) if (edited.origins >= 0).any() else -1
    rotations = np.empty((len(motions), len(edited), 3, 3))
    for j, (origin, parent) in enumerate(zip(edited.origins, edited.parents, strict=True)):
        if origin >= 0:
            rotations[:, j] = motions[:, origin, :, :3]
        elif parent >= 0:
            rotations[:, j] = rotations[:, parent]
        else:
            rotations[:, j] = motions[:, edited.origins[first], :, :3] if first >= 0 else np.eye(3)
    return rotations


def _solve(task: _Task, progress: Progress) -> tuple[Binding, Poses]:
    """Binding, by turns with poses of some frames, from each of the first bindings; then poses of all."""
    few = task.some_frames()
    best: tuple[float, Binding] | None = None
    bindings = first_bindings(task.rig, task.edited, task.edits)
    for number, binding in enumerate(bindings):
        for turn in range(ROUNDS):
            progress("Skeleton", (number + turn / ROUNDS) / len(bindings))
            poses, _ = few.fit(binding.joints, 6, progress)
            moved = rebind(few.stats, skinning_transforms(few.tree, poses), binding.joints, binding.allowed)
            if (moved == binding.joints).all():
                break
            binding = replace(binding, joints=moved)
        error = float(few.fit(binding.joints, 8, progress)[1].sum())
        if best is None or error < best[0]:
            best = error, binding
    assert best is not None
    return best[1], task.fit(best[1].joints, 30, progress)[0]


def _new_rig(task: _Task, binding: Binding, poses: Poses, progress: Progress) -> Rig:
    rig, edited, stats = task.rig, task.edited, task.stats
    moves = poses.offsets * stats.scale + stats.frame_centers - edited.positions[0]
    new = replace(
        rig,
        joint_names=edited.names,
        joint_parents=edited.parents,
        joint_positions=edited.positions,
        bone_joints=binding.joints.astype(np.int32),
        joint_rotations=_kept_signs(task, local_quaternions(edited.tree, poses.rotations)),
        root_translations=moves,
        bone_affinity=None,
        joint_bind=_kept_bind(rig, edited),
    )
    new = replace(new, bone_affinity=final_affinity(rig, new, edited, task.edits, binding, progress))
    new.check()
    return new


def _kept_signs(task: _Task, quaternions: F64) -> F64:
    """Quaternions (F, J, 4) with the signs they had, and the very numbers where a joint turns as it did."""
    kept = np.flatnonzero(task.edited.origins >= 0)
    before = task.rig.joint_rotations[:, task.edited.origins[kept]]
    now = quaternions[:, kept]
    alike = (now * normalize_quaternions(before)).sum(axis=-1, keepdims=True)  # (F, J, 1)
    same = (np.abs(alike) > 1 - 1e-12).all(axis=0, keepdims=True)
    quaternions[:, kept] = np.where(same, before, np.where(alike.sum(axis=0) < 0, -now, now))
    return quaternions


def _kept_bind(rig: Rig, edited: EditedSkeleton) -> F64 | None:
    if rig.joint_bind is None or (edited.origins < 0).any():
        return None
    same = all(rig.joint_names[o] == name for o, name in zip(edited.origins, edited.names, strict=True))
    return rig.joint_bind[edited.origins] if same else None


def _report(task: _Task, new: Rig) -> RigReport:
    stats, rig, edited = task.stats, task.rig, task.edited
    motion = stats.to_units(rig.bone_transforms)
    replayed = _percent(stats, motion)
    notes = []
    carrying = np.bincount(new.bone_joints, minlength=new.joint_count) > 0
    carried = np.bincount(rig.bone_joints, minlength=rig.joint_count) > 0
    used = np.where(edited.origins >= 0, carried[edited.origins], ~edited.ends)
    idle = [edited.names[j] for j in np.flatnonzero(used & ~carrying & task.edits.beside)]
    notes += [f"'{name}' carries no splats; it only hands on the motion of its parent." for name in idle]
    if rig.joint_bind is not None and new.joint_bind is None:
        notes.append(
            "The joints are no longer all those the capture brought, so further captures are not posed by "
            "their own skeletons but by fitting."
        )
    scale = stats.scale / 100
    return RigReport(replayed * scale, replayed, _percent(stats, _carried(stats, new)), {}, tuple(notes))


def _carried(stats: LbsStatistics, rig: Rig) -> F64:
    """(F, B, 3, 4) transforms of the outer bones, each rigid on its joint, in the statistics' units."""
    joints = joint_transforms(
        rig.joint_parents, rig.joint_positions, rig.joint_rotations, rig.root_translations
    )
    return stats.to_units(joints[:, rig.bone_joints])


def _percent(stats: LbsStatistics, transforms: F64) -> float:
    """Root mean square error in per cent of the diagonal."""
    total = squared_error(stats, transforms).sum() / (stats.point_count * len(transforms))
    return float(100 * np.sqrt(total))
