"""A rigged bar that has learned how its skin bones move, playing joints of the user's own."""

import bpy
import numpy as np
from rigs import make_capture, make_cloud, make_rig, make_skin_of

from gaussianimate.core.motion.learned import learn_motion
from gaussianimate.gaussianimate_addon.armature import JOINT, SKIN_BONE
from gaussianimate.gaussianimate_addon.capture_object import create_capture_object
from gaussianimate.gaussianimate_addon.motion_switch import pose_anew, remember_replay
from gaussianimate.gaussianimate_addon.rig_object import apply_rig
from gaussianimate.gaussianimate_addon.secondary.live import SESSION

FRAMES = 30


def learned_bar(scene, fps=24.0, frames=FRAMES, seed=0):
    """Return (splats, armature, rig); the armature is active and replays the capture from frame 1."""
    from dataclasses import replace

    cloud = make_cloud(150, seed=seed)
    rig = replace(make_rig(cloud, frames=frames, seed=seed), fps=fps)
    capture = make_capture(cloud, rig)
    object = create_capture_object(bpy.context, capture, capture.load_cloud(0), "y")
    armature = apply_rig(bpy.context, object, rig, make_skin_of(rig), learn_motion(rig))
    remember_replay(armature)
    scene.frame_start, scene.frame_end = 1, frames
    select(armature)
    return object, armature, rig


def select(armature):
    for each in bpy.context.view_layer.objects:
        each.select_set(False)
    bpy.context.view_layer.objects.active = armature
    armature.select_set(True)


def curves(armature):
    bag = armature.animation_data.action.layers[0].strips[0].channelbags[0]
    return bag.fcurves


def skin_curves(armature):
    names = {bone.name for bone in armature.data.bones if SKIN_BONE in bone}
    return [curve for curve in curves(armature) if curve.data_path.split('"')[1] in names]


def play_joints(armature):
    """Play the captured joints as an action of the user's: the replay without keys on skin bones."""
    action = armature.animation_data.action.copy()
    pose_anew(armature)
    armature.animation_data.action = action
    armature.animation_data.action_slot = action.slots[0]
    for curve in skin_curves(armature):
        curves(armature).remove(curve)
    bpy.context.view_layer.update()
    return armature


def skin_motions(armature, depsgraph=None):
    """Transforms (B, 3, 4) of the skin bones, rest to posed, as Blender evaluates them."""
    depsgraph = depsgraph or bpy.context.evaluated_depsgraph_get()
    posed = armature.evaluated_get(depsgraph)
    bones = sorted((b for b in posed.pose.bones if SKIN_BONE in b.bone), key=lambda b: b.bone[SKIN_BONE])
    return np.array([b.matrix @ b.bone.matrix_local.inverted() for b in bones])[:, :3]


def residuals(armature):
    """Location and rotation (B, 7) of the skin bones as they are in the file."""
    bones = sorted((b for b in armature.pose.bones if SKIN_BONE in b.bone), key=lambda b: b.bone[SKIN_BONE])
    return np.array([[*b.location, *b.rotation_quaternion] for b in bones])


def joint(armature, index):
    return next(bone for bone in armature.pose.bones if bone.bone.get(JOINT) == index)


def frames(scene, numbers, armature):
    """Transforms (F, B, 3, 4) at scene frames, visited in that order."""
    found = []
    for number in numbers:
        scene.frame_set(number)
        found.append(skin_motions(armature))
    return np.array(found)


def healthy():
    assert not SESSION.failures, SESSION.failures
