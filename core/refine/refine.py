"""Progressive refinement: a rig and more captures of its asset become a better rig (GaussiAnimate).

Known bones and joints replay most of what new frames show. Where they do not, clusters are split further and
joints are added; the rest pose and the joints there are keep their place and name.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from ..capture import Capture
from ..errors import CaptureError
from ..progress import Progress, no_progress
from ..rigging.build import Clock, extract_skeleton, rest_surface
from ..rigging.decomposition.continuation import continue_decomposition
from ..rigging.posing import joint_motions
from ..rigging.rig import Rig
from ..rigging.skeleton.binding import nearby_joints, rebind
from ..rigging.skeleton.extension import grow_skeleton
from ..rigging.skeleton.succession import PosedSkeleton, matched
from ..rigging.skeleton.tree import KinematicTree
from .posed_rig import PosedRig, pose_rig
from .report import NewCoverage, RefineReport

F64 = NDArray[np.float64]
Origins = NDArray[np.int32]
ALIKE = 1.25  # new frames replayed worse than old ones by no more than this factor show nothing new, ...
LITTLE_BONES = 2e-4  # ... nor do those replayed to within this, of the box diagonal, by the outer bones
LITTLE_JOINTS = 2e-3  # ... or this, by the joints alone
# A skeleton found anew is clearly better than the old one with so many joints more and less error, so many
# less where that had to grow and about its error, or with this share of its error.
FEWER, BETTER = 2, 0.6


@dataclass(frozen=True)
class RefineOptions:
    """What the user chooses.

    max_bones : most outer bones; a rig that has more keeps them
    new_joints : whether joints may be added to a skeleton that was found in the motion
    keep_joints : whether no joint may go, though the new motion speaks against it
    joint_threshold : as in `RigOptions`, for a rig that had no skeleton yet
    """

    max_bones: int = 50
    new_joints: bool = True
    keep_joints: bool = False
    joint_threshold: float = 0.3

    def check(self) -> None:
        """Raise `CaptureError` naming the option that is out of range."""
        if self.max_bones < 1:
            raise CaptureError(f"The number of bones must be at least 1, not {self.max_bones}.")
        if not 0 < self.joint_threshold <= 1:
            raise CaptureError(f"The joint threshold lies between 0 and 1, not at {self.joint_threshold}.")


@dataclass(frozen=True)
class RefineResult:
    """A refined rig.

    joint_origins : (J,) int32, joint of the rig before that each is, -1 where it is new
    bone_origins : (B,) int32, likewise of the outer bones
    report : what it bought
    """

    rig: Rig
    joint_origins: Origins
    bone_origins: Origins
    report: RefineReport


def refine_rig(
    rig: Rig, capture: Capture, options: RefineOptions | None = None, progress: Progress = no_progress
) -> RefineResult:
    """Refine a rig by more frames of its asset.

    Parameters
    ----------
    rig : built from some frames of the capture
    capture : all frames, those of the rig among them under the numbers it knows them by (`Rig.frames`); see
        `join_captures`

    Returns
    -------
    RefineResult : a rig in all frames. Where the new ones show nothing new it is the same but for their
        poses; else bones are added and traded, and joints added, as in a first rig.

    Raises
    ------
    CaptureError : no new frame, other points than the rig's, or frames of something else
    RigError : the rig was not built from frames of this capture
    Cancelled : by `progress`
    """
    options = options or RefineOptions()
    options.check()
    clock = Clock()
    with clock("poses"):
        before, notes = pose_rig(rig, capture, progress)
        covered = NewCoverage.of(rig, before)
    with clock("ssdr"):
        after, bone_origins = _with_more_bones(before, options.max_bones, progress)
    with clock("joints"):
        anew = after is not before
        after, joint_origins = _with_more_joints(after, anew, capture, options, clock, progress)
    after.rig.check()
    gone = np.setdiff1d(np.arange(rig.joint_count), joint_origins)
    gone = gone[np.isin(gone, rig.joint_parents)]
    if len(gone):
        names = ", ".join(rig.joint_names[joint] for joint in gone.tolist())
        notes = (*notes, f"Joints that the new motion speaks against were removed: {names}.")
    if after is before:
        notes = (*notes, "The new frames show nothing new: bones, weights and joints stay as they are.")
    report = RefineReport.of(before, after, covered)
    return RefineResult(
        after.rig, joint_origins, bone_origins, replace(report, seconds=clock.seconds, notes=notes)
    )


def _shows_new(posed: PosedRig, errors: F64, little: float) -> bool:
    """Whether squared errors (F,) are larger in the new frames than what the rig was good for before."""
    least = max(ALIKE * posed.rms(errors, ~posed.new), little * posed.stats.scale)
    return posed.rms(errors, posed.new) > least


def _with_more_bones(posed: PosedRig, max_bones: int, progress: Progress) -> tuple[PosedRig, Origins]:
    """Bones and weights fitted to all frames where the new ones need it, bound to the joints there are."""
    rig = posed.rig
    errors = posed.bone_errors()
    if not _shows_new(posed, errors, LITTLE_BONES):
        return posed, np.arange(rig.bone_count, dtype=np.int32)
    enough = max(posed.rms(errors, ~posed.new), LITTLE_BONES * posed.stats.scale)
    more = continue_decomposition(rig.rest, posed.positions, posed.skin, max_bones, enough, progress=progress)
    skin, origins = more.skin, more.origins
    affinity = _carried_affinity(rig, skin.indices, skin.weights, len(origins))
    refined = replace(
        rig,
        indices=skin.indices,
        weights=skin.weights.astype(np.float32),
        bone_transforms=skin.transforms,
        bone_joints=np.where(origins >= 0, rig.bone_joints[origins], affinity.argmax(axis=1)).astype(
            np.int32
        ),
        bone_affinity=affinity.astype(np.float32),
    )
    changed = PosedRig.of(refined, posed.positions, posed.new)
    return replace(changed, rig=_bound(changed, affinity, origins < 0)), origins


def _carried_affinity(rig: Rig, indices: NDArray[np.int32], weights: F64, count: int) -> F64:
    """Affinity (B, J) of outer bones: that of the earlier bones whose points they move."""
    known = rig.bone_affinity
    if known is None:
        known = np.eye(rig.joint_count)[rig.bone_joints]
    shared = _sparse(indices, weights, count).T @ _sparse(rig.indices, rig.weights, rig.bone_count)
    carried = np.asarray(shared @ known, np.float64)
    carried[carried.sum(axis=1) <= 0, 0] = 1
    return carried / carried.sum(axis=1, keepdims=True)


def _sparse(indices: NDArray[np.int32], weights: NDArray, count: int) -> csr_matrix:
    starts = np.arange(0, indices.size + 1, indices.shape[1])
    return csr_matrix((weights.ravel().astype(np.float64), indices.ravel(), starts), (len(indices), count))


def _bound(posed: PosedRig, affinity: F64, free: NDArray[np.bool_]) -> Rig:
    """The rig with its bones ``free`` (B,) bound to the joints that carry them best."""
    rig, stats = posed.rig, posed.stats
    tree = KinematicTree(rig.joint_positions, rig.joint_parents)
    allowed = nearby_joints(tree, affinity, leaves=rig.joint_bind is not None)
    allowed &= free[:, None]
    allowed[np.arange(len(free)), rig.bone_joints] = True
    binding = rebind(stats, stats.to_units(joint_motions(rig)), rig.bone_joints, allowed)
    return replace(rig, bone_joints=binding)


def _with_more_joints(
    posed: PosedRig,
    new_bones: bool,
    capture: Capture,
    options: RefineOptions,
    clock: Clock,
    progress: Progress,
) -> tuple[PosedRig, Origins]:
    """Joints added where the new frames need them.

    Where these need joints or had outer bones fitted anew, a skeleton found anew in all frames is looked at
    too: what a first capture hung on the wrong limb no growing mends.
    """
    rig = posed.rig
    same = posed, np.arange(rig.joint_count, dtype=np.int32)
    if not options.new_joints or rig.joint_bind is not None or rig.bone_count == 1:
        return same
    needed = _shows_new(posed, posed.joint_errors(), LITTLE_JOINTS)
    if not needed and (options.keep_joints or not new_bones):
        return same
    known, skin = _skeleton_of(posed), posed.skin
    surface = rest_surface(capture, rig.canonical_frame, progress)
    grown = known if rig.joint_count > 1 else None
    if grown is not None and needed:
        grown = grow_skeleton(known, posed.stats, surface, rig.rest, skin, ~posed.new, progress)
        if options.keep_joints or ((grown.origins >= 0).all() and not new_bones):
            return _with_skeleton(posed, grown), grown.origins
    found = extract_skeleton(
        capture,
        rig.canonical_frame,
        rig.rest,
        posed.positions,
        skin,
        options.joint_threshold,
        clock,
        progress,
        surface,
    )
    anew = PosedSkeleton(
        found.tree,
        found.names,
        found.bone_joints,
        found.affinity,
        found.rotations,
        found.root_translations,
        np.full(len(found.tree), -1, np.int32),
    )
    anew = matched(anew, known, posed.stats.scale)
    if grown is not None and not _clearly_better(posed, anew, grown):
        return _with_skeleton(posed, grown), grown.origins
    return _with_skeleton(posed, anew), anew.origins


def _clearly_better(posed: PosedRig, anew: PosedSkeleton, grown: PosedSkeleton) -> bool:
    """Whether a skeleton found anew is worth the joints it lacks: see `FEWER`, `BETTER`."""
    errors = []
    for skeleton in (anew, grown):
        trial = _with_skeleton(posed, skeleton)
        errors.append(trial.rms(trial.joint_errors()))
    fewer = int((grown.tree.child_counts > 0).sum() - (anew.tree.child_counts > 0).sum())
    poor = errors[1] > LITTLE_JOINTS * posed.stats.scale
    return bool(
        (fewer >= FEWER and (grown.origins < 0).any() and errors[0] < ALIKE * errors[1])
        or (fewer <= -FEWER and errors[0] < errors[1])
        or (poor and errors[0] < BETTER * errors[1])
    )


def _with_skeleton(posed: PosedRig, skeleton: PosedSkeleton) -> PosedRig:
    refined = replace(
        posed.rig,
        joint_names=skeleton.names,
        joint_parents=skeleton.tree.parents,
        joint_positions=skeleton.tree.positions,
        bone_joints=skeleton.bone_joints,
        joint_rotations=skeleton.rotations,
        root_translations=skeleton.root_translations,
        bone_affinity=skeleton.affinity.astype(np.float32),
    )
    return replace(posed, rig=refined)


def _skeleton_of(posed: PosedRig) -> PosedSkeleton:
    rig = posed.rig
    affinity = rig.bone_affinity
    if affinity is None:
        affinity = np.eye(rig.joint_count)[rig.bone_joints]
    return PosedSkeleton(
        KinematicTree(rig.joint_positions, rig.joint_parents),
        rig.joint_names,
        rig.bone_joints,
        affinity.astype(np.float64),
        rig.joint_rotations,
        rig.root_translations,
        np.arange(rig.joint_count, dtype=np.int32),
    )
