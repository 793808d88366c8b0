"""What a refit needs, read from the scene: the rig, its frames, the skeleton as it was edited."""

from __future__ import annotations

from dataclasses import dataclass, replace

import bpy
import numpy as np
from numpy.typing import NDArray

from ..core.errors import CaptureError, RigError
from ..core.rigging.edited_skeleton import EditedSkeleton
from ..core.rigging.rig import Rig
from .affine import apply_affine
from .bind import stale_points
from .capture_frames import frames_object, load_frames
from .edited_bones import edited_skeleton
from .motion_store import stored_rig
from .skeleton_bones import JointBone, joint_bones
from .skin_space import object_to_rig, skin_space, wanted_skin

F64 = NDArray[np.float64]


@dataclass(frozen=True)
class RefitTask:
    """What the solver and then the armature need; plain data.

    rig : as it was; positions : (F, N, 3) of its frames, None where the capture is gone
    edited : the corrected skeleton; bones : J names of the bones of its joints, "" for ends
    seen : the joints' bones as they were read
    space : (4, 4) similarity from the rig's axes to the armature's
    skin : rest matrices (4, 4) in armature space by index, and names, that skin bones are to have
    notes : one sentence each
    """

    rig: Rig
    positions: NDArray[np.float32] | None
    edited: EditedSkeleton
    bones: tuple[str, ...]
    seen: tuple[JointBone, ...]
    space: F64
    skin: dict[int, tuple[str, F64]]
    notes: tuple[str, ...]


def read_refit(object: bpy.types.Object, armature: bpy.types.Object) -> RefitTask:
    """Read what was edited, the armature out of Edit Mode.

    Raises
    ------
    RigError : one sentence: no stored motion, a skeleton that is none, a transform applied to splats only,
        or skin bones that were moved all over the place
    """
    if (stale := stale_points(object)) is not None:
        raise RigError(stale)
    rig, notes = stored_rig(object, armature), []
    space = skin_space(armature)
    upright = object_to_rig(object, armature)
    if np.abs(upright - np.eye(4)).max() > 1e-5:
        rest = apply_affine(upright, rig.rest.astype(np.float64))
        rig = replace(rig, rest=np.ascontiguousarray(rest, np.float32))
    positions = _captured(object, rig, upright)
    if positions is None:
        notes.append("The capture's frames are gone, so the poses were solved from the rig's own replay.")
    seen = joint_bones(armature)
    edited, names = edited_skeleton(rig, seen, armature, np.linalg.inv(space))
    return RefitTask(
        rig, positions, edited, names, tuple(seen), space, wanted_skin(object, armature, space), tuple(notes)
    )


def _captured(object: bpy.types.Object, rig: Rig, upright: F64) -> NDArray[np.float32] | None:
    """The points (F, N, 3) of the rig's frames in its axes; None where they are not there any more."""
    if frames_object(object) is None:
        return None
    try:
        frames = load_frames(object)
    except CaptureError as error:
        raise RigError(str(error)) from error
    if rig.frames.max() >= len(frames.positions) or not frames.frame_valid[rig.frames].all():
        return None
    positions = frames.positions[rig.frames]
    if np.abs(upright - np.eye(4)).max() > 1e-5:
        positions = np.stack(
            [apply_affine(upright, frame.astype(np.float64)).astype(np.float32) for frame in positions]
        )
    return positions
