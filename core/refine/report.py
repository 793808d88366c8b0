"""What further captures bought: joints, bones, errors, and how new their poses were."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..motion.coverage import coverage
from ..motion.database import build_database
from ..rigging.rig import Rig
from .posed_rig import PosedRig

FAR = 15.0  # degrees from the captured poses beyond which a pose is new


@dataclass(frozen=True)
class NewCoverage:
    """How far new frames are from all poses known before, degrees of joint rotation.

    median : of the frames, each by its farthest part
    worst : of any frame and part; worst_joint : the joint that part is about
    beyond : share of the frames beyond `FAR`
    """

    median: float
    worst: float
    worst_joint: str
    beyond: float

    @classmethod
    def of(cls, rig: Rig, posed: PosedRig) -> NewCoverage:
        """Measure the new frames of a posed rig by the poses the rig had."""
        database = build_database(rig, rig.clips, rig.up)
        parts = np.degrees(coverage(database, posed.rig.joint_rotations[posed.new]).parts)
        overall, worst = parts.max(axis=1), int(parts.max(axis=0).argmax())
        return cls(
            float(np.median(overall)),
            float(parts.max()),
            rig.joint_names[int(database.part_leaders[worst])],
            float((overall > FAR).mean()),
        )


@dataclass(frozen=True)
class Change:
    """A root mean square error, in per cent of the rest pose's box diagonal, before and after.

    before : of the rig as it was, posed in all frames; after : of the refined rig
    old, new : likewise (before, after), over the frames known before and the new ones
    """

    before: float
    after: float
    old: tuple[float, float]
    new: tuple[float, float]

    @classmethod
    def of(
        cls, before: PosedRig, after: PosedRig, errors: tuple[NDArray[np.float64], NDArray[np.float64]]
    ) -> Change:
        """Compare squared errors (F,) of both."""
        percent = 100 / before.stats.scale
        pairs = [
            (percent * before.rms(errors[0], frames), percent * after.rms(errors[1], frames))
            for frames in (slice(None), ~before.new, before.new)
        ]
        return cls(*pairs[0], pairs[1], pairs[2])


@dataclass(frozen=True)
class RefineReport:
    """What a refinement bought.

    joints, bones, frames : how many, before and after; of the joints those that are no mere ends of chains
    replay : error of the outer bones; skeleton : of the joints alone
    coverage : how new the new poses were
    seconds : stage -> wall time; notes : one sentence each, for the user
    """

    joints: tuple[int, int]
    bones: tuple[int, int]
    frames: tuple[int, int]
    replay: Change
    skeleton: Change
    coverage: NewCoverage
    seconds: dict[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, before: PosedRig, after: PosedRig, covered: NewCoverage) -> RefineReport:
        """Compare a rig posed in all frames with the refined one."""
        was, now = before.rig, after.rig
        return cls(
            (_moving(was), _moving(now)),
            (was.bone_count, now.bone_count),
            (int((~before.new).sum()), now.frame_count),
            Change.of(before, after, (before.bone_errors(), after.bone_errors())),
            Change.of(before, after, (before.joint_errors(), after.joint_errors())),
            covered,
        )

    def sentences(self) -> tuple[str, ...]:
        """What it bought, for the user: counts, errors, coverage."""
        known = self.coverage
        return (
            f"{_change('joint', self.joints)}, {_change('skin bone', self.bones)}, "
            f"{self.frames[1] - self.frames[0]} new frames beside {self.frames[0]}",
            f"replay error {self.replay.before:.2g} % to {self.replay.after:.2g} % of the size, by the "
            f"skeleton alone {self.skeleton.before:.2g} % to {self.skeleton.after:.2g} %",
            f"new poses were {known.median:.0f} degrees from the captured ones at the median, "
            f"{100 * known.beyond:.0f} % of them beyond {FAR:.0f}; the farthest: "
            f"{known.worst_joint}, {known.worst:.0f} degrees",
        )


def _change(name: str, counts: tuple[int, int]) -> str:
    before, after = counts
    plural = "s"[: after != 1]
    return f"{after} {name}{plural}" if before == after else f"{before} to {after} {name}{plural}"


def _moving(rig: Rig) -> int:
    """How many joints have joints or outer bones on them."""
    moving = np.isin(np.arange(rig.joint_count), np.append(rig.joint_parents[1:], rig.bone_joints))
    return int(moving.sum())
