"""Draw docs/images/refit.png: a knee deleted, put back by subdividing, and posed.

Run with the project's Python: ``.venv/bin/python docs/refit.py``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import bpy
import numpy as np
from mathutils import Quaternion

from gaussianimate.core.formats import mesh_to_splats
from gaussianimate.gaussianimate_addon.armature import JOINT, SKELETON, indexed_bones
from gaussianimate.gaussianimate_addon.capture_object import create_capture_object
from gaussianimate.gaussianimate_addon.point_cloud import point_cloud_to_cloud
from gaussianimate.gaussianimate_addon.properties import object_notes

SPLATS, GHOST = 12_000, 0.12
TARGET = Path(__file__).parent / "images" / "refit.png"
WIDTH, HEIGHT = 1500, 620


def main() -> None:
    """Rig the sample, correct its skeleton step by step, and picture each."""
    import addon_utils

    sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
    from picture import Picture
    from sample import load_sample

    addon_utils.enable("gaussianimate", default_set=True)
    bpy.ops.wm.read_homefile(app_template="", use_empty=True)
    capture = mesh_to_splats(load_sample(), SPLATS)
    bpy.context.scene.render.fps = round(capture.fps)
    object = create_capture_object(bpy.context, capture, capture.load_cloud(0), "y")
    bpy.context.view_layer.objects.active = object
    bpy.ops.gaussianimate.build_rig()
    armature = bpy.context.active_object
    thigh, knee = leg(armature)
    bpy.context.scene.frame_set(most_bent(armature, knee))
    picture = Picture()
    show(picture, object, armature, "as found", GHOST)
    edit(armature, lambda bones: delete(bones, thigh, knee))
    show(picture, object, armature, label(object, "knee deleted"), GHOST)
    edit(armature, lambda bones: subdivide(bones, thigh))
    show(picture, object, armature, label(object, "thigh subdivided"), GHOST)
    bpy.ops.gaussianimate.set_motion(motion="POSE")
    turn(armature, thigh, -0.9)
    shin = next(bone.name for bone in armature.data.bones[thigh].children if JOINT in bone)
    turn(armature, shin, 1.5)
    show(picture, object, armature, "posed anew", 0.6)
    picture.render(TARGET, WIDTH, HEIGHT)


def leg(armature: bpy.types.Object) -> tuple[str, str]:
    """Return the names of a thigh and its shin: the pair of bones that reaches lowest but for the feet."""
    chains = [
        (bone.parent, bone)
        for bone in indexed_bones(armature, JOINT)
        if bone.parent and bone.parent.parent and any(JOINT in child for child in bone.children)
    ]
    thigh, knee = min(chains, key=lambda pair: pair[1].tail_local.y)
    return thigh.name, knee.name


def most_bent(armature: bpy.types.Object, knee: str) -> int:
    """Return the frame in which a bone is turned most."""
    scene = bpy.context.scene
    angles = []
    for frame in range(scene.frame_start, scene.frame_start + 60):
        scene.frame_set(frame)
        angles.append(armature.pose.bones[knee].rotation_quaternion.angle)
    return scene.frame_start + int(np.argmax(angles))


def edit(armature: bpy.types.Object, change) -> None:
    """Change the bones and refit."""
    bpy.ops.object.mode_set(mode="EDIT")
    change(armature.data.edit_bones)
    bpy.ops.gaussianimate.refit_skeleton()


def delete(bones, thigh: str, knee: str) -> None:
    """Delete the knee as X does, and let the thigh reach down to the foot."""
    tail = bones[knee].tail.copy()
    for child in list(bones[knee].children):
        child.use_connect, child.parent = False, bones[thigh]
    bones.remove(bones[knee])
    bones[thigh].tail = tail


def subdivide(bones, name: str) -> None:
    """Halve a bone."""
    bpy.ops.armature.select_all(action="DESELECT")
    bone = bones[name]
    bone.select = bone.select_head = bone.select_tail = True
    bpy.ops.armature.subdivide()


def turn(armature: bpy.types.Object, name: str, angle: float) -> None:
    """Turn a bone about the sideways axis of the body."""
    bone = armature.pose.bones[name]
    rest = bone.bone.matrix_local.to_quaternion()
    bone.rotation_quaternion = rest.inverted() @ Quaternion((1, 0, 0), angle) @ rest


def label(object: bpy.types.Object, what: str) -> str:
    """Return what was done and the error it left."""
    words = object_notes(object).rig_notes.split()
    return f"{what}: {words[words.index('alone') + 1]} %"


def show(picture, object, armature, text: str, opacity: float) -> None:
    """Add the splats and bones as they stand."""
    bpy.context.view_layer.update()
    posed = object.evaluated_get(bpy.context.evaluated_depsgraph_get())
    placed = picture.add_figure(text, point_cloud_to_cloud(posed.data), object.matrix_world, opacity)
    picture.add_bones(armature, SKELETON, placed)


if __name__ == "__main__":
    main()
