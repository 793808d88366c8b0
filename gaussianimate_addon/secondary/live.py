"""The answer to the pose an armature stands in, and what is kept from one answer to the next.

An answer depends on the pose and the animation alone, so what is kept only saves time, but for the poses
remembered of armatures that are not moved by keys (see `history`). Everything is keyed by session numbers.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
from typing import Any, cast

import bpy
import numpy as np
from numpy.typing import NDArray

from ...core.motion.auto import AutoLive, AutoPredictor
from ...core.motion.coverage import Coverage
from ...core.motion.database import Residuals
from ..action import scene_fps
from ..failure import sentence
from ..motion_store import load_motion, motion_digest
from .history import Fastest, Memory, is_keyed_alone, keyed_poses
from .rig_bones import Poses, RigBones, rig_bones

F64 = NDArray[np.float64]
STILL = 1e-6  # change of rotations and places below which a history is one pose held


@dataclass
class Known:
    """What is kept of one armature object.

    bones, live, fastest : found and prepared for its motion; memory : see `history.Memory`
    asked, given : the poses last answered, and the answer with its coverage
    written : location and rotation of all pose bones as they were last written
    coverage : (P,) radians of the pose that stands, None where not known
    action : session number of the action it played last
    """

    bones: RigBones
    live: AutoLive
    fastest: Fastest
    memory: Memory = field(default_factory=Memory)
    asked: Poses | None = None
    given: tuple[Residuals, Coverage] | None = None
    written: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None
    coverage: NDArray[np.float32] | None = None
    action: int = -1


class Session:
    """The state of secondary motion in this session.

    failures : by session number of the armature, why it is not answered any more, one sentence
    paused : nothing is answered while a job steps through the scene
    """

    def __init__(self) -> None:
        self.known: dict[int, Known] = {}
        self.failures: dict[int, str] = {}
        self.paused = False

    def forget(self, uid: int | None = None) -> None:
        """Drop what is kept of one armature, or of all: an undo, another file."""
        if uid is None:
            self.known.clear()
            self.failures.clear()
        else:
            self.known.pop(uid, None)
            self.failures.pop(uid, None)

    def of(self, armature: bpy.types.Object) -> Known:
        """What is kept of an armature, found anew where bones or motion changed.

        Raises
        ------
        RigError : it has no motion, or its skeleton was edited
        """
        uid, digest = armature.session_uid, motion_digest(armature)
        known = self.known.get(uid)
        if known is None or not known.bones.fits(armature, digest):
            predictor = load_motion(armature).predictor
            bones = rig_bones(armature, predictor.database, digest)
            known = self.known[uid] = Known(bones, *self._prepared(predictor))
        return known

    def _prepared(self, predictor: AutoPredictor) -> tuple[AutoLive, Fastest]:
        """What answers by a predictor; copies of an armature share it."""
        for known in self.known.values():
            if known.live.predictor is predictor:
                return known.live, known.fastest
        return AutoLive(predictor), Fastest.of(predictor.database)

    def answer(self, armature: bpy.types.Object, depsgraph: bpy.types.Depsgraph, played: bool) -> bool:
        """Let the skin bones answer the pose; returns whether they or the coverage changed.

        Parameters
        ----------
        played : the frame has just changed
        """
        known = self.of(armature)
        poses = present_poses(armature, depsgraph, known, played)
        same = known.asked is not None and _equal(known.asked, poses)
        if not same:
            answer = known.live.history(poses.rotations, poses.root_translations)
            known.asked, known.given = poses, (answer.residuals, answer.coverage)
            known.coverage = answer.coverage.parts[0]
        assert known.given is not None
        if same and known.written is not None and _stands(armature, known):
            return False
        write_channels(armature, known, *known.bones.channels(known.given[0]))
        if depsgraph.mode == "RENDER":  # which leaves its animation in a copy, and copies anew now
            armature.update_tag(refresh={"TIME"})
        return True

    def covered(self, armature: bpy.types.Object, depsgraph: bpy.types.Depsgraph) -> NDArray[np.float32]:
        """Coverage (P,), radians, of the pose that stands; computed only where it is not known."""
        known = self.of(armature)
        distances = known.coverage
        if distances is None:
            pose = known.bones.pose(armature.evaluated_get(depsgraph))
            known.coverage = distances = known.live.matcher.covered(pose.rotations[0]).parts[0]
        return distances

    def shown_coverage(
        self, armature: bpy.types.Object, depsgraph: bpy.types.Depsgraph
    ) -> tuple[list[str], NDArray[np.float32]] | None:
        """Name of the joint each part is about, and its coverage (P,), radians; None where that failed."""
        try:
            distances = self.covered(armature, depsgraph)
            names = self.joint_names(armature)
            return [names[joint] for joint in self.of(armature).bones.database.part_leaders], distances
        except Exception as error:  # nothing may pass: Blender would tell it at every redraw
            self.fail(armature, error)
            return None

    def joint_names(self, armature: bpy.types.Object) -> list[str]:
        """What the joints are called now: by their bones, one without a bone by the motion."""
        bones = self.of(armature).bones
        names = list(load_motion(armature).joint_names)
        for joint, row in zip(bones.joints.tolist(), bones.joint_rows.tolist(), strict=True):
            names[joint] = armature.pose.bones[row].name
        return names

    def pose_changed(self, armature: bpy.types.Object) -> bool:
        """Note a pose that is not answered here; returns True."""
        known = self.known.get(armature.session_uid)
        if known is not None:
            known.coverage = None
        return True

    def plays_another_action(self, armature: bpy.types.Object) -> bool:
        """Whether the armature plays another action than at the last call."""
        known, animation = self.of(armature), armature.animation_data
        action = None if animation is None else animation.action
        before, known.action = known.action, 0 if action is None else action.session_uid
        return known.action != before

    def fail(self, armature: bpy.types.Object, error: Exception) -> None:
        """Pause an armature and say why, once."""
        self.failures[armature.session_uid] = sentence(error)
        print(
            f"GaussiAnimate paused the secondary motion of '{armature.name}': {sentence(error)}",
            file=sys.stderr,
        )


def present_poses(
    armature: bpy.types.Object, depsgraph: bpy.types.Depsgraph, known: Known, played: bool
) -> Poses:
    """Poses (H, J) up to the one that stands, spaced as captured frames; one alone where it is held still."""
    bones, scene = known.bones, cast(bpy.types.Scene, depsgraph.scene_eval)
    posed = armature.evaluated_get(depsgraph)
    now = scene.frame_current_final
    step = scene_fps(scene) / bones.database.fps
    frames: F64 = now - step * np.arange(history_length(known.live), dtype=np.float64)[::-1]
    if is_keyed_alone(armature, bones):
        history = keyed_poses(armature, posed, bones, frames, now)
        return bones.pose(posed) if history is None else _since_cut(history, known.fastest)
    pose = bones.pose(posed)
    if played:
        known.memory.add(now, pose, now - frames[0])
    history = known.memory.before(frames, pose)
    return pose if history is None else _since_cut(history, known.fastest)


def _since_cut(poses: Poses, fastest: Fastest) -> Poses:
    """The poses since another motion began; one alone where they are all the same."""
    start = np.flatnonzero(fastest.cuts(poses))
    first = start[-1] if len(start) else 0
    if _still(poses[first:]):
        first = len(poses) - 1
    return poses[first:]


def history_length(live: AutoLive) -> int:
    """Poses that an answer looks at, spaced as captured frames, the present one included."""
    kernel = live.predictor.kernel
    reach = 0.0 if kernel is None else kernel.layout.history * live.predictor.database.fps
    return max(live.matcher.history_length, math.ceil(reach - 1e-6) + 1)


def write_channels(armature: bpy.types.Object, known: Known, locations: F64, turns: F64) -> None:
    """Write location (1, S, 3) and rotation (1, S, 4) of skin bones; the animation is not evaluated anew."""
    bones = armature.pose.bones
    rows = known.bones.skin_rows
    modes = np.empty(len(bones), np.int32)
    bones.foreach_get("rotation_mode", modes)
    for row in rows[modes[rows] != 0].tolist():
        bones[row].rotation_mode = "QUATERNION"
    places, rotations = _channels(armature)
    places[rows], rotations[rows] = locations[0], turns[0]
    bones.foreach_set("location", places.ravel())
    bones.foreach_set("rotation_quaternion", rotations.ravel())
    known.written = places[rows], rotations[rows]
    armature.update_tag(refresh={"DATA"})


def _channels(armature: bpy.types.Object) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    bones: Any = armature.pose.bones
    places, rotations = np.empty((len(bones), 3), np.float32), np.empty((len(bones), 4), np.float32)
    bones.foreach_get("location", places.ravel())
    bones.foreach_get("rotation_quaternion", rotations.ravel())
    return places, rotations


def _stands(armature: bpy.types.Object, known: Known) -> bool:
    """Whether the skin bones are as they were written last."""
    assert known.written is not None
    places, rotations = _channels(armature)
    rows = known.bones.skin_rows
    return np.array_equal(places[rows], known.written[0]) and np.array_equal(
        rotations[rows], known.written[1]
    )


def _still(poses: Poses) -> bool:
    turns = np.abs((poses.rotations * poses.rotations[-1]).sum(axis=-1)).min()
    return bool(turns > 1 - STILL and np.ptp(poses.root_translations, axis=0).max() < STILL)


def _equal(one: Poses, other: Poses) -> bool:
    return np.array_equal(one.rotations, other.rotations) and np.array_equal(
        one.root_translations, other.root_translations
    )


SESSION = Session()
