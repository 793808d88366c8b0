"""Undo, other files, renaming, deleting, switching the add-on off and on while splats are drawn.

Never a crash, a picture of what is gone, or a line of errors.
"""

from __future__ import annotations

import sys
from pathlib import Path

import bpy
import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import driver
import stage
from stage import BLUE, FRONT, GREEN, HINGE, RED, look, tip, until

driver.install()
HALF = np.pi / 2


def view():
    return stage.views()[0]


def bent(angle):
    """Return the checks of a bar bent at its hinge."""

    def check(shot):
        stage.failure()
        shot.check(view(), stage.BASE, RED)
        shot.check(view(), tip(angle), BLUE)
        shot.check(view(), tip(HALF - angle), None)

    return check


def nothing(shot):
    stage.failure()
    for point in (stage.BASE, tip(0), tip(HALF)):
        shot.check(view(), point, None)


def call(operator, *arguments, **settings):
    with bpy.context.temp_override(**driver.view()):
        return operator(*arguments, **settings)


def push(message):
    bpy.ops.ed.undo_push(message=message)


def facing():
    look(view()[2], FRONT, (1, 0, 0), 5)
    view()[0].spaces.active.overlay.show_relationship_lines = False


def script(output):
    stage.clean_scene()
    facing()
    yield from undo_of_a_rig()
    yield from undo_of_poses_and_data()
    yield from names()
    yield from edit_mode()
    yield from deleted()
    yield from files()
    yield from add_on_off_and_on()
    yield from renders()
    yield from broken_shader(output)


def undo_of_a_rig():
    push("empty")
    stage.rigged_bar()
    push("rig")
    bpy.context.scene.frame_set(11)
    yield from until("life_rig", bent(HALF))
    call(bpy.ops.ed.undo)
    yield from until("life_rig_undone", nothing)
    call(bpy.ops.ed.redo)
    bpy.context.scene.frame_set(11)
    yield from until("life_rig_again", bent(HALF))
    bpy.context.scene.frame_set(1)
    yield from until("life_rest", bent(0))


def undo_of_poses_and_data():
    splats = bpy.data.objects["bar"]
    push("before")
    attribute = splats.data.attributes["radiance:base"]
    base = np.empty(4 * len(splats.data.points), np.float32)
    attribute.data.foreach_get("vector", base)
    green = base.reshape(-1, 4).copy()
    green[:, :3] = (np.array(GREEN) - 0.5) / 0.28209479
    attribute.data.foreach_set("vector", green.ravel())
    splats.data.update_tag()
    push("green")

    def all_green(shot):
        shot.check(view(), stage.BASE, GREEN)
        shot.check(view(), tip(0), GREEN)

    yield from until("life_green", all_green)
    call(bpy.ops.ed.undo)
    yield from until("life_green_undone", bent(0))
    call(bpy.ops.ed.redo)
    yield from until("life_green_again", all_green)
    call(bpy.ops.ed.undo)
    yield from until("life_green_undone", bent(0))

    uploads, scene = [], stage.ours("gaussianimate_addon.drawer.scene")
    build = scene.build_atlas
    scene.build_atlas = lambda *arguments: (uploads.append(1), build(*arguments))[1]
    try:
        bpy.context.scene.frame_set(6)
        push("frame")
        yield from until("life_frame", lambda shot: shot.check(view(), tip(HALF / 2), BLUE))
        call(bpy.ops.ed.undo)
        yield from until("life_frame_undone", bent(0))
        assert not uploads, "undo of a pose uploads splats"
    finally:
        scene.build_atlas = build


def names():
    """Object, data, armature and bone renamed; those of the nodes follow the bone's name."""
    splats, armature = bpy.data.objects["bar"], bpy.data.objects["bar rig"]
    bpy.context.scene.frame_set(11)
    for block in (splats, splats.data, armature, armature.data):
        block.name = f"another {block.name}"
        yield from until("life_renamed", bent(HALF))
        bpy.context.scene.frame_set(1)
        yield from until("life_renamed_rest", bent(0))
        bpy.context.scene.frame_set(11)
    armature.data.bones[HINGE].name = "knee"
    yield from until("life_bone_renamed", bent(HALF))
    splats.name, armature.name, armature.data.bones["knee"].name = "bar", "bar rig", HINGE
    bpy.context.scene.frame_set(1)
    yield from until("life_named_back", bent(0))
    push("names")


def edit_mode():
    """Edit Mode shows the rest pose; a bone moved there moves no splats at rest."""
    armature = bpy.data.objects["bar rig"]
    bpy.context.scene.frame_set(11)
    yield from until("life_posed", bent(HALF))
    bpy.context.view_layer.objects.active = armature
    call(bpy.ops.object.mode_set, mode="EDIT")
    yield from until("life_edit_mode", bent(0))
    call(bpy.ops.object.mode_set, mode="OBJECT")
    yield from until("life_edit_mode_left", bent(HALF))
    bpy.context.scene.frame_set(1)
    push("edited")


def deleted():
    push("before")
    bpy.ops.object.select_all(action="SELECT")
    call(bpy.ops.object.delete)
    push("deleted")
    yield from until("life_deleted", nothing)
    call(bpy.ops.ed.undo)
    yield from until("life_deletion_undone", bent(0))
    bpy.context.scene.frame_set(11)
    yield from until("life_posed", bent(HALF))
    bpy.data.objects.remove(bpy.data.objects["bar rig"])
    push("armature deleted")
    yield from until("life_no_armature", bent(0))
    call(bpy.ops.ed.undo)
    bpy.context.scene.frame_set(1)
    yield from until("life_armature_back", bent(0))


def files():
    path = str(driver.OUT / "drawer_saved.blend")
    bpy.context.scene.frame_set(11)
    bpy.ops.wm.save_as_mainfile(filepath=path)
    yield from until("life_saved", bent(HALF))
    bpy.ops.wm.read_homefile(app_template="")
    yield 0.5
    stage.clean_scene()
    facing()
    yield from until("life_new_file", nothing)
    bpy.ops.wm.open_mainfile(filepath=path)
    yield 0.5
    facing()
    yield from until("life_opened", bent(HALF))
    bpy.ops.wm.revert_mainfile()
    yield from until("life_reverted", bent(HALF))


def add_on_off_and_on():
    bpy.ops.preferences.addon_disable(module=driver.PACKAGE)
    yield 1.0
    shot = stage.Shot("life_disabled")
    assert bpy.data.objects["bar"].display_type != "BOUNDS", "Blender draws again"
    bpy.ops.preferences.addon_enable(module=driver.PACKAGE)
    yield from until("life_enabled", bent(HALF))
    assert shot is not None


def renders():
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = 1, 2
    scene.render.resolution_x, scene.render.resolution_y = 64, 64
    scene.render.engine = "BLENDER_WORKBENCH"
    scene.render.filepath = str(driver.OUT / "drawer_render_")
    scene.camera = bpy.data.objects.new("camera", bpy.data.cameras.new("camera"))
    scene.collection.objects.link(scene.camera)
    scene.camera.location, scene.camera.rotation_euler = (1, -50, 0), FRONT
    call(bpy.ops.render.opengl, animation=True)
    yield 0.5
    call(bpy.ops.render.render, "INVOKE_DEFAULT", animation=True)
    yield from driver.wait_until(lambda: not bpy.app.is_job_running("RENDER"), 60, "the render")
    yield 1.0
    for window in list(bpy.context.window_manager.windows)[1:]:
        with bpy.context.temp_override(window=window):
            bpy.ops.wm.window_close()
    yield 0.5
    bpy.data.objects.remove(scene.camera)
    bpy.context.scene.frame_set(11)
    facing()
    yield from until("life_rendered", bent(HALF))


def broken_shader(output):
    """A driver that refuses the shader is told of once, and Blender draws instead."""
    viewport = stage.ours("gaussianimate_addon.drawer.viewport")
    before, draw = output.complaints(), viewport.draw_frame
    assert not before, before

    def refuse(*arguments):
        raise stage.ours("gaussianimate_addon.drawer.shaders").ShaderError("The driver did not compile")

    viewport.draw_frame = refuse
    try:
        bpy.context.scene.frame_set(6)
        for _ in range(4):
            view()[0].tag_redraw()
            yield 0.4
    finally:
        viewport.draw_frame = draw
    assert stage.drawer().failure == "The driver did not compile"
    assert len(output.complaints()) == 1, output.complaints()
    assert bpy.data.objects["bar"].display_type != "BOUNDS", "Blender draws instead"
    stage.Shot("life_failed")
    viewport.retry()
    bpy.context.scene.frame_set(11)
    yield from until("life_retried", bent(HALF))
    assert len(output.complaints()) == 1, output.complaints()


stage.run("drawer_lifecycle", script, expected_complaints=1)
