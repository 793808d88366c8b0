"""A refined rig in place: frames, bones, weights, replay and learned motion follow, the user's own stays."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import bpy
import numpy as np
from numpy.typing import NDArray

from ..core.capture import Capture
from ..core.errors import CaptureError, RigError
from ..core.joined_capture import moved_capture
from ..core.motion.learned import LearnedMotion
from ..core.refine.refine import RefineResult
from ..core.rigging.rig import Rig
from ..core.skinning.skin import Skin
from .affine import apply_affine
from .armature import SKIN_BONE, indexed_bones
from .armature_edits import dress, editable, leave_edit_mode, rekey, replaced_data
from .attributes import splats
from .capture_frames import frames_object
from .capture_object import capture_from_point_cloud, is_capture_object, scene_frame
from .deform_nodes import get_bind, own_group, set_bind
from .deformer import add_deformer, deformer
from .more_frames import MoreFrames, store_joined, use_frames
from .motion_store import load_motion, motion_digest, store_motion, stored_rig
from .refined_bones import RefinedBones
from .refit_lost import lost_keys, lost_targets
from .secondary.live import SESSION
from .skeleton_bones import skeleton_is_edited
from .skin_attributes import read_skin, write_skin
from .skin_space import object_to_rig, skin_space
from .subject import active_armature_of
from .weights.layers import has_layers, read_layers, restart_layers

F64 = NDArray[np.float64]
TURNED = 1e-5  # difference of a matrix from the identity that is none


@dataclass(frozen=True)
class RiggedCapture:
    """A rigged capture, read from the scene; plain data.

    rig, motion : as stored; capture : all its frames in the rig's axes
    to_rig : (4, 4) from the object's axes to the rig's; space : (4, 4) from there to the armature's
    digest : of the motion
    """

    rig: Rig
    motion: LearnedMotion
    capture: Capture
    to_rig: F64
    space: F64
    digest: str

    @property
    def applied(self) -> bool:
        """Whether the splats were moved since the rig was built."""
        return bool(np.abs(self.to_rig - np.eye(4)).max() > TURNED)


def read_rigged(object: bpy.types.Object, armature: bpy.types.Object) -> RiggedCapture:
    """Read the rig and its capture, the armature out of Edit Mode.

    Raises
    ------
    RigError : the skeleton was edited, no motion is kept, or others that follow the armature are no copies
    CaptureError : the captured frames are gone
    """
    if (edited := skeleton_is_edited(armature)) is not None:
        raise RigError(f"{edited}, then add captures")
    _followers(object, armature)
    rig, motion, capture = stored_rig(object, armature), load_motion(armature), _capture(object)
    to_rig = object_to_rig(object, armature)
    read = RiggedCapture(rig, motion, capture, to_rig, skin_space(armature), motion_digest(armature))
    if not read.applied:
        return read
    rest = apply_affine(to_rig, rig.rest.astype(np.float64)).astype(np.float32)
    return replace(read, rig=replace(rig, rest=rest), capture=moved_capture(capture, to_rig))


def _capture(object: bpy.types.Object) -> Capture:
    if not is_capture_object(object):
        raise CaptureError(f"'{object.name}' carries no captured frames any more; build its rig anew")
    return capture_from_point_cloud(object)


def _followers(object: bpy.types.Object, armature: bpy.types.Object) -> list[bpy.types.Object]:
    """The objects that the armature deforms, all with the same splats."""
    found = [
        other for other in bpy.data.objects if other.library is None and active_armature_of(other) == armature
    ]
    for other in found:
        if other.data != object.data:
            raise RigError(
                f"'{other.name}' follows '{armature.name}' too, with splats of its own; give it a rig of its "
                "own, or remove it first"
            )
    return found


@dataclass(frozen=True)
class Refined:
    """What a worker made of a rigged capture and another one.

    read : the rigged capture; refined : its rig; skin, motion : of that
    more : the new frames
    """

    read: RiggedCapture
    refined: RefineResult
    skin: Skin
    motion: LearnedMotion
    more: MoreFrames


def apply_refined(
    context: bpy.types.Context, object: bpy.types.Object, armature: bpy.types.Object, result: Refined
) -> list[str]:
    """Let the scene follow; returns what the user should know, one sentence each.

    Raises
    ------
    RigError : the rig was changed since it was read
    """
    leave_edit_mode(armature)
    read, refined = result.read, result.refined
    changed = motion_digest(armature) != read.digest or skeleton_is_edited(armature) is not None
    if changed or frames_object(object) is None:
        raise RigError(
            f"The rig of '{armature.name}' was changed while the capture was added, so the result was "
            "dropped; add it again"
        )
    followers = _followers(object, armature)
    if has_layers(object):
        read_layers(object)  # raises where they are of a later version, before anything is changed
    store, notes = store_joined(object, result.more)
    bones = RefinedBones(read.rig, refined.rig, refined.joint_origins, refined.bone_origins, read.space)
    with editable(context, armature), replaced_data(armature), _kept_skin(object):
        joints = bones.update(context, armature)
        dress(armature, set(joints))
        store_motion(armature, result.motion, read.space)
        write_skin(splats(object), result.skin)
        for follower in followers:
            _bind(follower, armature)
        rekey(context, object, armature, read.space, refined.rig)
    if has_layers(object):
        notes += restart_layers(object, [bone.name for bone in indexed_bones(armature, SKIN_BONE)])
        for follower in followers:
            _bind(follower, armature)
    use_frames(object, store)
    _lengthen(context.scene, object, refined.rig)
    SESSION.forget()  # of copies too, which share the bones
    context.view_layer.update()
    return [*notes, *lost_keys(armature), *lost_targets(armature)]


@contextmanager
def _kept_skin(object: bpy.types.Object) -> Iterator[None]:
    """Put the skin back where something goes wrong."""
    before = read_skin(splats(object))
    try:
        yield
    except BaseException:
        write_skin(splats(object), before)
        raise


def _bind(object: bpy.types.Object, armature: bpy.types.Object) -> None:
    """A deformer for the new skin bones, bound as the one before."""
    modifier = deformer(object)
    assert modifier is not None
    matrix = get_bind(modifier.node_group)
    shown = modifier.show_viewport, modifier.show_render
    modifier = add_deformer(object, armature)
    modifier.show_viewport, modifier.show_render = shown
    set_bind(own_group(modifier), matrix)


def _lengthen(scene: bpy.types.Scene, object: bpy.types.Object, rig: Rig) -> None:
    """Let the scene end no sooner than the capture."""
    scene.frame_end = max(scene.frame_end, math.ceil(scene_frame(object, int(rig.frames.max())) - 1e-4))
