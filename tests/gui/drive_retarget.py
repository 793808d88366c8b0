"""Retargeting in a window: the panel and its list, Esc while the source is sampled, one undo step."""

from __future__ import annotations

import sys
from importlib import import_module
from math import radians
from pathlib import Path

import bpy
from mathutils import Matrix

sys.path.insert(0, str(Path(__file__).parent))
import driver
import stage
from driver import view, wait_until

driver.install()
jobs = import_module(f"{driver.PACKAGE}.gaussianimate_addon.job")
FRAMES = 4000  # enough to be caught at it


def call(operator, *arguments, **settings):
    with bpy.context.temp_override(**view()):
        return operator(*arguments, **settings)


def idle():
    return jobs.running() is None


def add_source():
    """An armature of two bones beside the bar, whose second bone swings."""
    data = bpy.data.armatures.new("source")
    source = bpy.data.objects.new("source", data)
    bpy.context.scene.collection.objects.link(source)
    bpy.context.view_layer.objects.active = source
    call(bpy.ops.object.mode_set, mode="EDIT")
    above = None
    for i, name in enumerate(("first", "second")):
        bone = data.edit_bones.new(name)
        bone.head, bone.tail, bone.parent = (i, 0, 0), (i + 1, 0, 0), above
        above = bone
    call(bpy.ops.object.mode_set, mode="OBJECT")
    source.location.y = 1.5
    bone = source.pose.bones["second"]
    bone.rotation_mode = "XYZ"
    for frame, angle in ((1, 0.0), (20, 80.0), (FRAMES, 0.0)):
        bone.rotation_euler.x = radians(angle)
        bone.keyframe_insert("rotation_euler", frame=frame)
    return source


def open_panel():
    panel = bpy.types.GAUSSIANIMATE_PT_retarget
    bpy.utils.unregister_class(panel)
    panel.bl_options, panel.bl_order = set(), 0
    bpy.utils.register_class(panel)


def script():
    stage.clean_scene()
    _, armature = stage.rigged_bar()
    source = add_source()
    bpy.context.view_layer.objects.active = armature
    open_panel()
    yield from driver.show_tab()
    replay = armature.animation_data.action
    armature.gaussianimate_retarget.source = source
    call(bpy.ops.gaussianimate.suggest_bone_map, source="source")
    pairs = {pair.name: pair.source for pair in armature.gaussianimate_retarget.bones}
    print("suggested", pairs, flush=True)
    assert pairs == {"joint_0": "first", stage.HINGE: "second"}
    yield 1.0
    driver.picture("retarget_1_map")
    call(bpy.ops.ed.undo_push, message="Start")

    # Esc amid the sampling.
    bpy.context.scene.frame_set(5)
    call(bpy.ops.gaussianimate.retarget_action, "INVOKE_DEFAULT", source="source")
    yield 0.4
    assert not idle(), "4,000 frames take longer than that"
    yield from driver.escape(idle)
    assert len(bpy.data.actions) == 2 and len(bpy.data.scenes) == 1
    assert bpy.context.scene.frame_current == 5 and armature.animation_data.action == replay

    # To the end.
    call(
        bpy.ops.gaussianimate.retarget_action,
        "INVOKE_DEFAULT",
        source="source",
        frame_start=1,
        frame_end=40,
    )
    yield from wait_until(idle, 60, "retargeting")
    yield 0.5
    armature = bpy.data.objects["bar rig"]
    assert armature.animation_data.action.name == "sourceAction on bar rig"
    for frame in (5, 20):
        bpy.context.scene.frame_set(frame)
        graph = bpy.context.evaluated_depsgraph_get()
        mine, theirs = (
            object.evaluated_get(graph).pose.bones[name].matrix.to_3x3()
            @ object.data.bones[name].matrix_local.to_3x3().inverted()
            for object, name in ((armature, stage.HINGE), (bpy.data.objects["source"], "second"))
        )
        apart = (mine.inverted() @ theirs).to_quaternion().angle
        assert min(apart, radians(360) - apart) < 1e-3, (frame, apart)
        assert theirs != Matrix.Identity(3)
    yield 0.5
    driver.picture("retarget_2_moved")
    call(bpy.ops.ed.undo)
    yield 0.5
    armature = bpy.data.objects["bar rig"]
    assert "sourceAction on bar rig" not in bpy.data.actions, "one undo step takes it back"
    assert armature.animation_data.action.name == "bar rig replay"
    call(bpy.ops.ed.redo)
    yield 0.5
    assert bpy.data.objects["bar rig"].animation_data.action.name == "sourceAction on bar rig"


driver.run(script)
