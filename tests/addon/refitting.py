"""A rigged bar whose joints are edited, and what is looked at before and after."""

from dataclasses import replace
from functools import cache

import bpy
import numpy as np
from rigs import make_capture, make_cloud, make_rig, make_skin_of

from gaussianimate.core.motion.learned import learn_motion
from gaussianimate.core.rigging.posing import joint_motions
from gaussianimate.gaussianimate_addon.armature import JOINT, SKIN_BONE, indexed_bones
from gaussianimate.gaussianimate_addon.capture_object import create_capture_object
from gaussianimate.gaussianimate_addon.properties import object_notes
from gaussianimate.gaussianimate_addon.rig_object import apply_rig

FRAMES = 12


def true_rig(count=300, joints=4):
    """A bar whose outer bones do nothing but follow their joints, with an end."""
    cloud = make_cloud(count, joints=joints, degree=0)
    rig = make_rig(cloud, joints=joints, frames=FRAMES)
    still = np.tile([1.0, 0, 0, 0], (FRAMES, 1, 1))
    rig = replace(
        rig,
        joint_names=(*rig.joint_names, "end"),
        joint_parents=np.arange(-1, joints).astype(np.int32),
        joint_positions=np.concatenate([rig.joint_positions, [[joints, 0, 0]]]),
        joint_rotations=np.concatenate([rig.joint_rotations, still], axis=1),
    )
    rig.bone_transforms[:] = joint_motions(rig)[:, rig.bone_joints]
    return cloud, rig


@cache
def bar():
    """A bar of four joints: capture, rig, skin and learned motion."""
    cloud, rig = true_rig()
    return make_capture(cloud, rig), rig, make_skin_of(rig), learn_motion(rig)


def rigged_bar():
    """Splats and armature of the bar, which replays its capture; the armature is active."""
    capture, *parts = bar()
    object = create_capture_object(bpy.context, capture, capture.load_cloud(0), "z")
    armature = apply_rig(bpy.context, object, *parts)
    bpy.context.view_layer.objects.active = armature
    armature.select_set(True)
    return object, armature


def edit(armature, change):
    bpy.context.view_layer.objects.active = armature
    bpy.ops.object.mode_set(mode="EDIT")
    change(armature.data.edit_bones)


def leave():
    bpy.ops.object.mode_set(mode="OBJECT")


def delete(name):
    """Delete a bone as Blender does: its children hang on its parent."""

    def change(bones):
        for child in list(bones[name].children):
            child.use_connect = False
            child.parent = bones[name].parent
        bones.remove(bones[name])

    return change


def select(bones, *names):
    bpy.ops.armature.select_all(action="DESELECT")
    for name in names:
        bones[name].select = bones[name].select_head = bones[name].select_tail = True


def joints(armature):
    """Name of every joint's bone and of the joint's bone above it, in the rig's order."""
    bones = indexed_bones(armature, JOINT)
    assert [bone[JOINT] for bone in bones] == sorted({bone[JOINT] for bone in bones})
    return [(bone.name, bone.parent.name if bone.parent else None) for bone in bones]


def carriers(armature):
    return [bone.parent.name for bone in indexed_bones(armature, SKIN_BONE)]


def splats(object, frame):
    """Splats in the world at a frame."""
    bpy.context.scene.frame_set(frame)
    posed = object.evaluated_get(bpy.context.evaluated_depsgraph_get())
    places = np.empty(3 * len(posed.data.points), np.float32)
    posed.data.attributes["position"].data.foreach_get("vector", places)
    world = np.array(posed.matrix_world)
    return places.reshape(-1, 3) @ world[:3, :3].T + world[:3, 3]


def shown(object):
    return np.stack([splats(object, frame) for frame in (1, 4, 7, 11)])


def notes(object):
    return object_notes(object).rig_notes


def error(object):
    """What the summary says of the error after and before."""
    words = notes(object).splitlines()[0].split()
    return float(words[words.index("alone") + 1]), float(words[words.index("(before") + 1])
