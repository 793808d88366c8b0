"""What Blender hides is not drawn, in whichever way it is hidden; instances are; hidden armatures pose."""

from __future__ import annotations

import sys
from pathlib import Path

import bpy

sys.path.insert(0, str(Path(__file__).parent))
import driver
import stage
from stage import BLUE, FRONT, HINGE, RED, look, tip, until

driver.install()
SPLAT, COVERED = (0, 0, 0), (1, 0, 0)


def script(output):
    stage.clean_scene()
    splats = stage.ball("splats", (SPLAT, RED), (COVERED, BLUE))
    stage.wall("wall", -1, 1)
    area, _, data = view = stage.views()[0]
    look(data, FRONT, (0.6, 0, 0), 6)
    area.spaces.active.overlay.show_object_origins = False
    yield from hiding(area.spaces.active, view, splats)
    yield from hidden_armature(view)


def hiding(space, view, splats):
    scene, layer = bpy.context.scene, bpy.context.view_layer

    def shown(shot):
        shot.check(view, SPLAT, RED)
        shot.check(view, COVERED, BLUE)

    def gone(shot):
        shot.check(view, SPLAT, None)
        shot.check(view, COVERED, None)

    def switches():
        yield "eye", lambda on: splats.hide_set(on)
        yield "disabled", lambda on: setattr(splats, "hide_viewport", on)
        yield "type", lambda on: setattr(space, "show_object_viewport_pointcloud", not on)
        yield "excluded", lambda on: setattr(layer.layer_collection.children["holder"], "exclude", on)
        yield (
            "collection_eye",
            lambda on: setattr(layer.layer_collection.children["holder"], "hide_viewport", on),
        )

    holder = bpy.data.collections.new("holder")
    scene.collection.children.link(holder)
    holder.objects.link(splats)
    scene.collection.objects.unlink(splats)
    for name, switch in switches():
        switch(True)
        yield from until(f"hidden_{name}", gone)
        switch(False)
        yield from until("shown_again", shown)
    yield from h_key(splats, shown, gone)
    yield from local_view(splats, shown, gone)
    yield from view_layer(holder, shown, gone)
    yield from instances(holder, view, gone)
    yield from no_place(splats, view, shown, gone)


def h_key(splats, shown, gone):
    bpy.ops.object.select_all(action="DESELECT")
    splats.select_set(True)
    driver.press("H")
    yield from until("hidden_H", gone)
    driver.press("H", alt=True)
    yield from until("shown_again", shown)


def local_view(splats, shown, gone):
    other = bpy.data.objects["wall"]
    for object, expected in ((other, gone), (splats, shown)):
        bpy.ops.object.select_all(action="DESELECT")
        object.select_set(True)
        bpy.context.view_layer.objects.active = object
        with bpy.context.temp_override(**driver.view()):
            bpy.ops.view3d.localview(frame_selected=False)
        bpy.ops.object.select_all(action="DESELECT")  # origins are no splats
        yield from until(f"local_view_of_{object.name}", expected)
        with bpy.context.temp_override(**driver.view()):
            bpy.ops.view3d.localview(frame_selected=False)
        yield from until("shown_again", shown)


def view_layer(holder, shown, gone):
    """Another view layer, in which the collection is excluded."""
    window, scene = bpy.context.window_manager.windows[0], bpy.context.scene
    first = window.view_layer
    other = scene.view_layers.new("other")
    other.layer_collection.children[holder.name].exclude = True
    window.view_layer = other
    yield from until("hidden_view_layer", gone)
    window.view_layer = first
    yield from until("shown_again", shown)
    scene.view_layers.remove(other)


def instances(holder, view, gone):
    """A collection instance, once beside the collection and once alone."""
    empty = bpy.data.objects.new("instance", None)
    empty.instance_type, empty.instance_collection = "COLLECTION", holder
    empty.location = (0, 0, 1)
    bpy.context.scene.collection.objects.link(empty)

    def twice(shot):
        shot.check(view, SPLAT, RED)
        shot.check(view, (0, 0, 1), RED)
        shot.check(view, (1, 0, 1), BLUE)

    yield from until("instance", twice)
    exclude = bpy.context.view_layer.layer_collection.children[holder.name]
    exclude.exclude = True

    def alone(shot):
        gone(shot)
        shot.check(view, (0, 0, 1), RED)

    yield from until("instance_alone", alone)
    empty.location.z = -1

    def moved(shot):
        gone(shot)
        shot.check(view, (0, 0, 1), None)
        shot.check(view, (0, 0, -1), RED)

    yield from until("instance_moved", moved)
    empty.hide_set(True)

    def none(shot):
        gone(shot)
        shot.check(view, (0, 0, -1), None)

    yield from until("instance_hidden", none)
    exclude.exclude = False
    bpy.data.objects.remove(empty)


def no_place(splats, view, shown, gone):
    """Scaled to nothing, and somewhere that is no number."""
    splats.scale = (0, 0, 0)
    yield from until("scaled_to_nothing", gone)
    splats.scale = (1, 1, 1)
    yield from until("shown_again", shown)
    splats.location.x = float("nan")
    yield from until("no_number", gone)
    splats.location.x = 0
    yield from until("shown_again", shown)


def hidden_armature(view):
    """An armature that is hidden in whichever way still poses its splats."""
    stage.clean_scene()
    _, armature = stage.rigged_bar()
    look(view[2], FRONT, (1, 0, 0), 5)
    names = {
        "eye": lambda: armature.hide_set(True),
        "disabled": lambda: setattr(armature, "hide_viewport", True),
    }
    for frame, (name, hide) in zip((1, 11), names.items(), strict=True):
        hide()
        bpy.context.scene.frame_set(frame)
        angle = 0 if frame == 1 else 1.5708

        def posed(shot, angle=angle):
            shot.check(view, tip(angle), BLUE)
            shot.check(view, tip(1.5708 - angle), None)

        yield from until(f"hidden_armature_{name}", posed)
    assert armature.pose.bones[HINGE]


stage.run("drawer_hiding", script)
