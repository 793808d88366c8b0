"""Who draws splats in viewports: the switch, what it leaves alone, and what files keep of it."""

import json
import subprocess
import sys
import textwrap

import bpy
import numpy as np
import pytest
from compare import assert_equal_bits
from rigs import make_capture, make_cloud, make_rig, make_skin_of

from gaussianimate.gaussianimate_addon.attributes import read_attribute
from gaussianimate.gaussianimate_addon.bake import posed_cloud
from gaussianimate.gaussianimate_addon.capture_object import create_capture_object
from gaussianimate.gaussianimate_addon.deformer import deformer_armature
from gaussianimate.gaussianimate_addon.drawer import lifecycle
from gaussianimate.gaussianimate_addon.drawer.display import (
    display_shading,
    drawn_objects,
    give_back_all,
    skin_layout,
)
from gaussianimate.gaussianimate_addon.drawer.draw import Show
from gaussianimate.gaussianimate_addon.drawer.viewport import DRAWER, retry
from gaussianimate.gaussianimate_addon.drawer.viewport_subset import KEPT
from gaussianimate.gaussianimate_addon.modifiers import DISPLAY, find_modifier
from gaussianimate.gaussianimate_addon.motion_switch import remember_replay
from gaussianimate.gaussianimate_addon.point_cloud import cloud_to_point_cloud
from gaussianimate.gaussianimate_addon.rig_object import apply_rig, remove_rig

COUNT = 4 * KEPT
CLOUD = make_cloud(COUNT, degree=0)
RIG = make_rig(CLOUD, frames=4)
SKIN = make_skin_of(RIG)


@pytest.fixture(autouse=True)
def window(monkeypatch):
    """Files are handed over as in a Blender with a window."""
    monkeypatch.setattr(lifecycle, "_has_viewports", lambda: True)


@pytest.fixture
def capture(empty_scene):
    object = create_capture_object(bpy.context, make_capture(CLOUD, RIG), CLOUD, "z")
    activate(object)
    return object


@pytest.fixture
def rigged(capture):
    remember_replay(apply_rig(bpy.context, capture, RIG, SKIN))
    activate(capture)
    return capture


def activate(object):
    for other in bpy.context.view_layer.objects:
        other.select_set(other == object)
    bpy.context.view_layer.objects.active = object


def switch(display):
    assert bpy.ops.gaussianimate.set_display(display=display) == {"FINISHED"}
    bpy.context.view_layer.update()


def shown_count(object):
    return len(object.evaluated_get(bpy.context.evaluated_depsgraph_get()).data.points)


def state(object):
    thin = find_modifier(object, DISPLAY)
    return object.gaussianimate.display, object.display_type, thin is not None and thin.show_viewport


DRAWN, NATIVE = ("DRAWER", "BOUNDS", True), ("NATIVE", "TEXTURED", False)


def test_the_switch_goes_there_and_back(rigged):
    names = [modifier.name for modifier in rigged.modifiers]
    switch("DRAWER")
    assert state(rigged) == DRAWN and drawn_objects() == [rigged]
    assert KEPT <= shown_count(rigged) <= 2 * KEPT
    switch("NATIVE")
    assert state(rigged) == NATIVE and drawn_objects() == []
    assert [modifier.name for modifier in rigged.modifiers] == names
    assert shown_count(rigged) == COUNT and not [g for g in bpy.data.node_groups if "subset" in g.name]


def test_the_switch_works_on_the_armature_and_is_one_undo_step(rigged):
    name = rigged.name
    activate(deformer_armature(rigged))
    bpy.ops.ed.undo_push(message="before")
    assert bpy.ops.gaussianimate.set_display("EXEC_DEFAULT", True, display="DRAWER") == {"FINISHED"}
    assert state(bpy.data.objects[name]) == DRAWN
    bpy.ops.ed.undo()
    assert state(bpy.data.objects[name]) == NATIVE
    bpy.ops.ed.redo()
    assert state(bpy.data.objects[name]) == DRAWN


def test_the_objects_own_display_comes_back(rigged):
    for own in ("WIRE", "BOUNDS", "SOLID"):
        rigged.display_type = own
        switch("DRAWER")
        switch("DRAWER")
        switch("NATIVE")
        assert rigged.display_type == own


def test_the_few_that_viewports_evaluate_follow_the_pose(rigged):
    bpy.context.scene.frame_set(3)
    full = np.array(rigged.evaluated_get(bpy.context.evaluated_depsgraph_get()).bound_box)
    switch("DRAWER")
    few = np.array(rigged.evaluated_get(bpy.context.evaluated_depsgraph_get()).bound_box)
    assert np.abs(full - few).max() < 0.1 * np.ptp(full, axis=0).max()


def test_a_hidden_armature_is_still_evaluated(rigged):
    switch("DRAWER")
    armature = deformer_armature(rigged)
    armature.hide_set(True)
    heads = []
    for frame in (1, 3):
        bpy.context.scene.frame_set(frame)
        posed = armature.evaluated_get(bpy.context.evaluated_depsgraph_get())
        heads.append([tuple(bone.tail) for bone in posed.pose.bones])
    assert heads[0] != heads[1]


def test_an_unrigged_capture_keeps_all_splats(capture):
    switch("DRAWER")
    assert state(capture) == DRAWN
    assert shown_count(capture) == COUNT


@pytest.mark.parametrize("kind", ("capture", "rigged"))
def test_blender_draws_nothing_in_viewports(kind, request):
    """EEVEE and Cycles draw objects shown as bounds, too: what they get is transparent and has no size."""
    object = request.getfixturevalue(kind)

    def largest(name):
        data = object.evaluated_get(bpy.context.evaluated_depsgraph_get()).data
        return np.abs(read_attribute(data, name)[..., -1]).max() if name in data.attributes else 0

    bpy.context.scene.frame_set(3)
    assert largest("radiance:base") > 0.5
    switch("DRAWER")
    assert largest("radiance:base") == largest("radius") == 0
    switch("NATIVE")
    assert largest("radiance:base") > 0.5


def test_bakes_and_exports_are_complete(rigged):
    bpy.context.scene.frame_set(3)
    before = posed_cloud(bpy.context.evaluated_depsgraph_get(), rigged)
    switch("DRAWER")
    assert_equal_bits(posed_cloud(bpy.context.evaluated_depsgraph_get(), rigged), before)


def test_bakes_of_captures_are_complete(capture):
    bpy.context.scene.frame_set(3)
    before = posed_cloud(bpy.context.evaluated_depsgraph_get(), capture)
    switch("DRAWER")
    assert_equal_bits(posed_cloud(bpy.context.evaluated_depsgraph_get(), capture), before)


def test_removing_the_rig_plays_every_splat_again(rigged):
    switch("DRAWER")
    remove_rig(rigged)
    bpy.context.view_layer.update()
    assert shown_count(rigged) == COUNT
    switch("DRAWER")
    assert shown_count(rigged) == COUNT


@pytest.mark.parametrize("linked", [False, True])
def test_copies_have_a_switch_of_their_own(rigged, linked):
    switch("DRAWER")
    bpy.ops.object.duplicate(linked=linked)
    copy = bpy.context.active_object
    assert copy != rigged and state(copy) == DRAWN and len(drawn_objects()) == 2
    switch("NATIVE")
    assert state(copy) == NATIVE and shown_count(copy) == COUNT
    assert state(rigged) == DRAWN and shown_count(rigged) < COUNT
    rigged.name = "renamed"
    assert drawn_objects() == [rigged]


def test_renders_show_every_splat(rigged, device, tmp_path):
    """The picture rendered with the drawer on is the native one bit by bit, at a posed frame."""
    scene = bpy.context.scene
    camera = bpy.data.objects.new("camera", bpy.data.cameras.new("camera"))
    scene.collection.objects.link(camera)
    camera.data.type, camera.data.ortho_scale = "ORTHO", 5
    camera.location, camera.rotation_euler = (1.5, -10, 0), (np.pi / 2, 0, 0)
    scene.camera = camera
    scene.render.engine = "BLENDER_WORKBENCH"
    scene.render.resolution_x = scene.render.resolution_y = 64
    scene.render.film_transparent = True
    scene.render.filepath = str(tmp_path / "picture.png")
    scene.frame_set(3)

    def render():
        bpy.ops.render.render(write_still=True)
        image = bpy.data.images.load(scene.render.filepath)
        pixels = np.array(image.pixels[:])
        bpy.data.images.remove(image)
        return pixels

    native = render()
    switch("DRAWER")
    assert shown_count(rigged) < COUNT
    drawn = render()
    assert native[3::4].max() > 0.5
    np.testing.assert_array_equal(drawn, native)


STRANGER = """
    import json, sys
    import bpy

    bpy.ops.wm.open_mainfile(filepath=sys.argv[1])
    object = next(o for o in bpy.context.scene.objects if o.type == "POINTCLOUD")
    bpy.context.scene.frame_set(3)
    shown = object.evaluated_get(bpy.context.evaluated_depsgraph_get()).data
    assert "gaussianimate" not in sys.modules
    print("RESULT" + json.dumps([object.display_type, len(shown.points)]))
"""


def test_a_saved_file_is_native_for_strangers(rigged, tmp_path):
    switch("DRAWER")
    path = tmp_path / "drawn.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    assert state(rigged) == DRAWN and not bpy.data.is_dirty
    bpy.context.view_layer.update()
    assert shown_count(rigged) < COUNT
    script = tmp_path / "stranger.py"
    script.write_text(textwrap.dedent(STRANGER), encoding="utf-8")
    command = [sys.executable, str(script), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout.split("RESULT")[1].splitlines()[0]) == ["TEXTURED", COUNT]


def test_a_loaded_file_is_drawn_again(rigged, tmp_path):
    name = rigged.name
    switch("DRAWER")
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "drawn.blend"))
    bpy.ops.wm.read_homefile(app_template="", use_empty=True)
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "drawn.blend"))
    object = bpy.data.objects[name]
    assert state(object) == DRAWN and not bpy.data.is_dirty
    activate(object)
    switch("NATIVE")
    assert state(object) == NATIVE


def test_a_save_that_fails_leaves_the_display(rigged, tmp_path):
    switch("DRAWER")
    with pytest.raises(RuntimeError):
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "nowhere" / "drawn.blend"))
    assert state(rigged) == DRAWN


def test_saving_stays_out_of_undo(rigged, tmp_path):
    name = rigged.name
    bpy.ops.ed.undo_push(message="before")
    switch("DRAWER")
    bpy.ops.ed.undo_push(message="drawn")
    rigged.location.x = 1
    bpy.ops.ed.undo_push(message="moved")
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "drawn.blend"))
    bpy.ops.ed.undo()
    object = bpy.data.objects[name]
    assert state(object) == DRAWN and object.location.x == 0
    bpy.ops.ed.redo()
    assert state(bpy.data.objects[name]) == DRAWN


@pytest.mark.parametrize("link", [False, True])
def test_appended_objects_are_drawn_and_linked_ones_native(rigged, tmp_path, link):
    name, path = rigged.name, str(tmp_path / "drawn.blend")
    switch("DRAWER")
    bpy.ops.wm.save_as_mainfile(filepath=path)
    bpy.ops.wm.read_homefile(app_template="", use_empty=True)
    operator = bpy.ops.wm.link if link else bpy.ops.wm.append
    operator(filepath=f"{path}/Object/{name}", directory=f"{path}/Object/", filename=name)
    object = bpy.data.objects[name]
    assert (object.library is not None) == link
    if link:
        assert object.display_type == "TEXTURED" and drawn_objects() == []
        bpy.context.view_layer.objects.active = object
        assert not bpy.ops.gaussianimate.set_display.poll()
    else:
        assert state(object) == DRAWN and drawn_objects() == [object]


def test_library_overrides_keep_their_display(rigged, tmp_path):
    """Linked rigs are posed by overrides, whose switch is their own and is saved."""
    path, shot = str(tmp_path / "library.blend"), str(tmp_path / "shot.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path)
    bpy.ops.wm.read_homefile(app_template="", use_empty=True)
    with bpy.data.libraries.load(path, link=True) as (_, wanted):
        wanted.objects = ["bar"]
    bpy.context.scene.collection.objects.link(wanted.objects[0])
    wanted.objects[0].override_hierarchy_create(bpy.context.scene, bpy.context.view_layer)

    def override():
        return next(o for o in bpy.data.objects if o.override_library and o.type == "POINTCLOUD")

    activate(override())
    switch("DRAWER")
    assert state(override()) == DRAWN
    bpy.ops.wm.save_as_mainfile(filepath=shot)
    bpy.ops.wm.open_mainfile(filepath=shot)
    assert state(override()) == DRAWN and drawn_objects() == [override()]
    activate(override())
    switch("NATIVE")
    assert state(override()) == NATIVE and shown_count(override()) == COUNT


def test_a_failed_drawer_gives_native_display_back_until_it_is_tried_again(rigged, tmp_path):
    switch("DRAWER")
    try:
        DRAWER.failure = "no"
        give_back_all()
        assert rigged.display_type == "TEXTURED"
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "failed.blend"))
        assert rigged.display_type == "TEXTURED", "nothing draws, so Blender has to"
        retry()
        assert DRAWER.failure is None and state(rigged) == DRAWN
    finally:
        DRAWER.failure = None


def test_disabling_the_extension_gives_native_display_back(rigged, addon):
    import addon_utils

    switch("DRAWER")
    addon.unregister()
    try:
        assert rigged.display_type == "TEXTURED" and shown_count(rigged) == COUNT
    finally:
        addon.register()
    assert addon_utils.check("gaussianimate")[1]


def test_the_switch_says_what_it_misses(empty_scene):
    assert not bpy.ops.gaussianimate.set_display.poll()
    object = bpy.data.objects.new("plain", bpy.data.pointclouds.new("plain"))
    empty_scene.collection.objects.link(object)
    activate(object)
    assert not bpy.ops.gaussianimate.set_display.poll()
    object = bpy.data.objects.new("splats", cloud_to_point_cloud(make_cloud(10), "splats"))
    empty_scene.collection.objects.link(object)
    activate(object)
    assert bpy.ops.gaussianimate.set_display.poll()


def test_settings_reach_the_shading(empty_scene):
    settings = empty_scene.gaussianimate_display
    assert display_shading(bpy.context).show == Show.COLOUR and display_shading(bpy.context).elastic == 1
    for show in ("WEIGHT", "STRETCH"):
        settings.show = show
        assert display_shading(bpy.context).show == Show[show]
    settings.elastic, settings.outlines, settings.unweighted, settings.gradients = False, True, True, True
    shading = display_shading(bpy.context)
    assert (shading.elastic, shading.outlines, shading.mark_unweighted, shading.gradients) == (0, 1, 1, 1)


def test_the_skin_layout_is_a_preference(empty_scene, capfd):
    chosen = bpy.context.preferences.addons["gaussianimate"].preferences
    try:
        for layout in ("COMPACT", "PAPER10", "EXACT"):
            chosen.skin_layout = layout
            assert skin_layout(bpy.context) == layout.lower()
    finally:
        chosen.skin_layout = "EXACT"
    assert "Error" not in capfd.readouterr().err, "of the update that redraws"


def test_without_viewports_files_stay_native(rigged, tmp_path, monkeypatch):
    switch("DRAWER")
    monkeypatch.setattr(lifecycle, "_has_viewports", lambda: False)
    name = rigged.name
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "shot.blend"))
    assert state(rigged) == ("DRAWER", "TEXTURED", False), "scripts see every splat"
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "shot.blend"))
    assert state(bpy.data.objects[name]) == ("DRAWER", "TEXTURED", False)
