"""Splats bound to an armature made by hand, and what gestures made of them."""

from __future__ import annotations

import bpy
import driver
import numpy as np
import stage

BONES = ("left", "right")


def bound(cloud, name="bar", bones=(((0, 0, 0), (1, 0, 0)), ((1, 0, 0), (2, 0, 0)))):
    """Add splats bound without weights to an armature with bones `BONES`; return both."""
    splats = stage.splat_object(cloud, name, "NATIVE")
    armature = hand_made(bones)
    select(splats)
    with bpy.context.temp_override(**driver.view()):
        bpy.ops.gaussianimate.bind(armature=armature.name, method="EMPTY")
    make_active(armature, BONES[0])
    bpy.ops.ed.undo_push(message="Bound")
    return splats, armature


def hand_made(bones, names=BONES):
    data = bpy.data.armatures.new("hand made")
    armature = bpy.data.objects.new("hand made", data)
    bpy.context.scene.collection.objects.link(armature)
    select(armature)
    bpy.ops.object.mode_set(mode="EDIT")
    for name, (head, tail) in zip(names, bones, strict=True):
        bone = data.edit_bones.new(name)
        bone.head, bone.tail = head, tail
    bpy.ops.object.mode_set(mode="OBJECT")
    return armature


def make_active(armature, bone):
    armature.data.bones.active = armature.data.bones[bone]


def select(object):
    bpy.context.view_layer.update()
    for other in bpy.context.view_layer.objects.selected:
        other.select_set(False)
    object.select_set(True)
    bpy.context.view_layer.objects.active = object


def tool(shape, mode="object", **settings):
    """Choose a tool of the toolbar, and its settings."""
    with bpy.context.temp_override(**driver.view()):
        done = bpy.ops.wm.tool_set_by_id(name=f"gaussianimate.{shape}_{mode}")
    assert done == {"FINISHED"}
    for name, value in settings.items():
        setattr(bpy.context.scene.gaussianimate_gesture, name, value)


def layers(name="bar"):
    read = stage.ours("gaussianimate_addon.weights.layers").read_layers
    return read(bpy.data.objects[name]).layers


def kinds(name="bar"):
    return [layer.shape.kind for layer in layers(name)]


def weights(bone, name="bar"):
    """Return the weights (N,) of a bone and where the splats are (N, 3)."""
    data = bpy.data.objects[name].data
    skin = stage.ours("gaussianimate_addon.skin_attributes").read_skin(data)
    positions = np.empty(3 * len(data.points), np.float32)
    data.attributes["position"].data.foreach_get("vector", positions)
    found = (skin.weights * (skin.indices == BONES.index(bone))).sum(axis=1)
    return found, positions.reshape(-1, 3)


def mask():
    """Return what the drawer shows of a gesture, None while there is none."""
    shown = stage.drawer().mask
    return None if shown is None else shown.values
