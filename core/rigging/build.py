"""From a capture to a rig, stage by stage."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..capture import Capture
from ..errors import CaptureError
from ..progress import Progress, no_progress
from .decomposition.ssdr import SkinningDecomposition, decompose
from .rig import Rig
from .skeleton.skeleton import Skeleton, build_skeleton, single_joint

if TYPE_CHECKING:
    from .curves.surface import Surface

DEFAULT_FPS = 24.0
FARTHEST = 1e15  # metres
SKELETONS = ("auto", "given", "extracted")


@dataclass(frozen=True)
class RigOptions:
    """What the user chooses.

    max_bones : most outer bones; max_influences : most bones a point, 1..4
    joint_threshold : tau, how much the bone weights must change along the skeleton for a joint, 0..1
    canonical_frame : frame of the capture that becomes the rest pose
    skeleton : "given", the joints the capture brings; "extracted", joints found in its motion; "auto", given
        where there are some and they do nothing but turn
    """

    max_bones: int = 50
    max_influences: int = 4
    joint_threshold: float = 0.3
    canonical_frame: int = 0
    skeleton: str = "extracted"

    def check(self) -> None:
        """Raise `CaptureError` naming the option that is out of range."""
        if self.max_bones < 1:
            raise CaptureError(f"The number of bones must be at least 1, not {self.max_bones}.")
        if not 1 <= self.max_influences <= 4:
            raise CaptureError(f"A point can follow 1 to 4 bones, not {self.max_influences}.")
        if not 0 < self.joint_threshold <= 1:
            raise CaptureError(f"The joint threshold lies between 0 and 1, not at {self.joint_threshold}.")
        if self.skeleton not in SKELETONS:
            raise CaptureError(f"The skeleton can be auto, given or extracted, not '{self.skeleton}'.")


@dataclass(frozen=True)
class RigReport:
    """How good a rig is and what it took.

    rmse : root mean square point distance of the SSDR replay, metres, over all points and valid frames
    rmse_percent : that in per cent of the rest pose's box diagonal
    skeleton_rmse_percent : likewise, of the replay by the skeleton alone, each outer bone bound to its joint
    seconds : stage -> wall time
    notes : one sentence each, for the user
    """

    rmse: float
    rmse_percent: float
    skeleton_rmse_percent: float
    seconds: dict[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class RigResult:
    """A rig and its report."""

    rig: Rig
    report: RigReport


class Clock:
    """Wall time of each stage, seconds."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        """Time what is done inside."""
        start = time.perf_counter()
        yield
        self.seconds[stage] = time.perf_counter() - start


def build_rig(
    capture: Capture, options: RigOptions | None = None, progress: Progress = no_progress
) -> RigResult:
    """Find the outer bones, the skeleton and its poses that replay a capture.

    Raises
    ------
    CaptureError : nothing to rig, an option out of range, or no skeleton where a given one is asked for
    Cancelled : by `progress`
    """
    options = options or RigOptions()
    options.check()
    clock = Clock()
    if options.skeleton == "given" and capture.skeleton is None:
        raise CaptureError(f"{capture.name} brings no skeleton; let one be extracted from its motion.")
    frames, canonical, notes = usable_frames(capture, options.canonical_frame)
    rest = capture.positions[canonical]
    positions = capture.positions if len(frames) == capture.frame_count else capture.positions[frames]
    _check_size(capture.name, positions)
    with clock("ssdr"):
        skin = decompose(rest, positions, options.max_bones, options.max_influences, progress=progress)
        if skin.transforms.shape[1] > 1:
            from .decomposition.separation import separate_places

            skin = separate_places(rest, skin, options.max_bones)
    notes += [*skin.notes, *_frame_notes(len(frames))]
    skeleton = _given(capture, canonical, frames, positions, skin, options, clock, progress, notes)
    if skeleton is None:
        skeleton = extract_skeleton(
            capture, canonical, rest, positions, skin, options.joint_threshold, clock, progress
        )
    rig = Rig(
        rest=np.ascontiguousarray(rest, np.float32),
        indices=skin.indices,
        weights=skin.weights.astype(np.float32),
        bone_transforms=skin.transforms,
        joint_names=skeleton.names,
        joint_parents=skeleton.tree.parents,
        joint_positions=skeleton.tree.positions,
        bone_joints=skeleton.bone_joints,
        joint_rotations=skeleton.rotations,
        root_translations=skeleton.root_translations,
        frames=frames.astype(np.int32),
        fps=capture.fps or DEFAULT_FPS,
        canonical_frame=canonical,
        bone_affinity=skeleton.affinity.astype(np.float32),
        joint_bind=skeleton.bind,
        clips=None if capture.clips is None else capture.clips[frames],
        up=capture.up_direction,
    )
    rig.check()
    percent = 100 / (float(np.linalg.norm(np.ptp(rest.astype(np.float64), axis=0))) or 1.0)
    notes += skeleton.notes
    report = RigReport(
        skin.rmse, skin.rmse * percent, skeleton.rmse * percent, clock.seconds, (*capture.notes, *notes)
    )
    return RigResult(rig, report)


def _check_size(name: str, positions: NDArray[np.float32]) -> None:
    """Raise `CaptureError` where points are so far out that squares of distances have no place in float32."""
    farthest = float(np.abs(positions).max())
    if farthest > FARTHEST:
        raise CaptureError(f"Points of {name} lie {farthest:.2g} m from the origin; scale the capture down.")


def _given(
    capture: Capture,
    canonical: int,
    frames: NDArray[np.intp],
    positions: NDArray[np.float32],
    skin: SkinningDecomposition,
    options: RigOptions,
    clock: Clock,
    progress: Progress,
    notes: list[str],
) -> Skeleton | None:
    """The skeleton the capture brings; None where it brings none, or one that is not to be used."""
    if capture.skeleton is None or options.skeleton == "extracted":
        return None
    from .skeleton.given import bind_skeleton

    rest = capture.positions[canonical]
    with clock("joints"):
        skeleton = bind_skeleton(capture.skeleton, canonical, frames, rest, positions, skin, progress)
    if not skeleton.sliding:
        return skeleton
    used = options.skeleton == "given"
    notes.append(
        f"The capture's skeleton was {'followed in part' if used else 'not used'}, because joints of a rig "
        f"only turn, and these also slide on their parents: {skeleton.sliding}."
    )
    return skeleton if used else None


def extract_skeleton(
    capture: Capture,
    canonical: int,
    rest: NDArray[np.float32],
    positions: NDArray[np.float32],
    skin: SkinningDecomposition,
    threshold: float,
    clock: Clock,
    progress: Progress,
    surface: Surface | None = None,
) -> Skeleton:
    """The skeleton found in the motion of points (F, N, 3), on the curve of the surface of the rest pose."""
    cloud = capture.load_cloud(canonical) if capture.load_cloud else None
    opacities = None if cloud is None else cloud.opacities
    if skin.transforms.shape[1] == 1:
        with clock("joints"):
            return single_joint(rest, positions, skin, opacities)
    from .curves.contraction import contract
    from .curves.curve import extract_curve

    with clock("surface"):
        surface = surface or rest_surface(capture, canonical, progress)
    with clock("curve"):
        curve = extract_curve(surface, contract(surface, progress=progress), rest, progress=progress)
    with clock("joints"):
        return build_skeleton(surface, curve, rest, positions, skin, opacities, threshold, progress=progress)


def rest_surface(capture: Capture, canonical: int, progress: Progress = no_progress) -> Surface:
    """The closed surface of the canonical frame."""
    from .curves.surface import closed_surface

    cloud = capture.load_cloud(canonical) if capture.load_cloud else None
    scales, opacities = (None, None) if cloud is None else (cloud.scales, cloud.opacities)
    return closed_surface(capture.positions[canonical], capture.faces, scales, opacities, progress=progress)


def usable_frames(capture: Capture, wanted: int) -> tuple[NDArray[np.intp], int, list[str]]:
    """Valid frames, the canonical one (the valid frame nearest to the one wanted), and notes."""
    if capture.point_count == 0 or capture.frame_count == 0:
        raise CaptureError(f"{capture.name} has no points or no frames, so there is nothing to rig.")
    finite = np.array([bool(np.isfinite(frame).all()) for frame in capture.positions])
    frames = np.flatnonzero(capture.frame_valid & finite)
    if not len(frames):
        raise CaptureError(
            f"{capture.name} has no usable frame: all are empty or hold values that are not finite."
        )
    if not 0 <= wanted < capture.frame_count:
        raise CaptureError(
            f"Frame {wanted} cannot be the rest pose: there are frames 0 to {capture.frame_count - 1}."
        )
    notes = []
    if skipped := capture.frame_count - len(frames):
        notes.append(f"{skipped} empty or unusable frames were skipped.")
    canonical = int(frames[np.argmin(np.abs(frames - wanted))])
    if canonical != wanted:
        notes.append(f"Frame {wanted} is unusable, so frame {canonical} is the rest pose.")
    return frames, canonical, notes


def _frame_notes(count: int) -> list[str]:
    if count > 1:
        return []
    return [
        "A single frame shows no motion: the rig has one bone. A scan that does not move wants an armature "
        "of yours, bound to it, and weights drawn for its bones."
    ]
