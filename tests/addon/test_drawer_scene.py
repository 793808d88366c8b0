"""What the drawer reads of a scene, and when it reads it anew."""

import bpy
import numpy as np
import pytest
from compare import assert_equal_bits
from drawn_scenes import DRAWER, items, plain, playing, rigged
from scenes import pose

from gaussianimate.gaussianimate_addon.bake import posed_cloud
from gaussianimate.gaussianimate_addon.drawer import lifecycle
from gaussianimate.gaussianimate_addon.drawer.display import set_display
from gaussianimate.gaussianimate_addon.drawer.draw import bone_moves
from gaussianimate.gaussianimate_addon.modifiers import DEFORM, find_modifier


def test_poses_and_places_read_nothing(drawn):
    object, armature = rigged()
    assert drawn() == ["read", "build"]
    before = items()[0]
    pose(armature, 1)
    assert drawn() == []
    object.location.x = 3
    assert drawn() == []
    bpy.context.scene.frame_set(4)
    assert drawn() == []
    after = items()[0]
    assert np.abs(after.transforms - before.transforms).max() > 0.01 and after.matrix[0, 3] == 3


def test_other_objects_ask_for_nothing(drawn):
    """Neither animated ones at every frame nor meshes while they are edited."""
    rigged()
    mesh = bpy.data.objects.new("mesh", bpy.data.meshes.new("mesh"))
    bpy.context.scene.collection.objects.link(mesh)
    for frame in (1, 9):
        mesh.location.x = frame
        mesh.keyframe_insert("location", frame=frame)
    drawn()

    def find():
        raise AssertionError("looked for splat objects again")

    def update():
        DRAWER.splats.update(find, bpy.context.view_layer.depsgraph, "exact")

    bpy.context.scene.frame_set(4)
    assert mesh.matrix_world.translation.x > 1.5
    update()
    mesh.data.update_tag()
    bpy.context.view_layer.update()
    update()
    mesh.modifiers.new("nodes", "NODES")
    bpy.context.view_layer.update()
    with pytest.raises(AssertionError, match="looked"):
        update()
    DRAWER.look_again()


def test_changed_splats_are_read_and_uploaded(drawn):
    object, _ = rigged()
    drawn()
    object.data.attributes["position"].data[0].vector = (9, 9, 9)
    object.data.update_tag()
    assert drawn() == ["read", "build"]
    assert (DRAWER.splats.subjects[0].find().data.attributes["position"].data[0].vector[0]) == 9
    object.data.update_tag()
    assert drawn() == ["read"], "equal data are not uploaded again"


def test_objects_come_and_go(drawn):
    rigged()
    drawn()
    other = plain("other")
    assert drawn() == ["read", "build"] and len(items()) == 2
    bpy.data.objects.remove(other)
    assert drawn() == ["build"] and len(items()) == 1
    set_display(bpy.data.objects["bar"], "NATIVE")
    assert drawn() == [] and items() == [] and DRAWER.splats.atlas is None


def test_edits_evaluated_with_a_new_frame_are_seen(drawn):
    object, armature = rigged()
    bone = armature.pose.bones[0]
    for frame in (1, 9):
        bone.location.x += 1
        bone.keyframe_insert("location", frame=frame)
    drawn()
    for frame in (4, 5):
        bpy.context.scene.frame_set(frame)
        assert drawn() == []
    set_display(object, "NATIVE")
    bpy.context.scene.frame_set(6)
    assert drawn() == [] and items() == []
    set_display(object, "DRAWER")
    bpy.context.scene.frame_set(7)
    assert drawn() == ["read", "build"] and len(items()) == 1
    object.data.attributes["position"].data[0].vector = (9, 9, 9)
    object.data.update_tag()
    bpy.context.scene.frame_set(8)
    assert drawn() == ["read", "build"]


def test_undo_uploads_only_what_it_changed(drawn):
    object, armature = rigged()
    drawn()
    bpy.ops.ed.undo_push(message="rig")
    pose(armature, 1)
    bpy.ops.ed.undo_push(message="pose")
    drawn()
    bpy.ops.ed.undo()
    assert drawn() == ["read"]
    assert (items()[0].transforms == np.eye(3, 4)).all()
    bpy.ops.ed.redo()
    assert drawn() == ["read"]
    assert (items()[0].transforms != np.eye(3, 4)).any()
    splats = bpy.data.objects["bar"].data
    splats.attributes["position"].data[0].vector = (9, 9, 9)
    splats.update_tag()
    bpy.ops.ed.undo_push(message="position")
    assert drawn() == ["read", "build"]
    moved = DRAWER.splats.atlas.spans[0].centre
    bpy.ops.ed.undo()
    assert drawn() == ["read", "build"]
    assert np.abs(DRAWER.splats.atlas.spans[0].centre - moved).max() > 0.01


def test_undo_of_a_deletion(drawn):
    object, armature = rigged()
    bpy.ops.ed.undo_push(message="rig")
    bpy.data.objects.remove(object)
    bpy.data.objects.remove(armature)
    bpy.ops.ed.undo_push(message="deleted")
    assert drawn() == [] and items() == []
    bpy.ops.ed.undo()
    assert drawn() == ["read", "build"] and len(items()) == 1


def test_renamed_objects_and_bones_are_followed(drawn):
    object, armature = rigged()
    pose(armature, 1)
    drawn()
    expected = items()[0].transforms
    object.name, armature.name = "a name", "another"
    assert drawn() == []
    np.testing.assert_array_equal(items()[0].transforms, expected)


def test_rest_poses_edited_are_read_anew(drawn):
    object, armature = rigged()
    drawn()
    bpy.context.view_layer.objects.active = armature
    bpy.ops.object.mode_set(mode="EDIT")
    assert items()[0].transforms is None
    for bone in armature.data.edit_bones:
        bone.tail.z += 0.5
    bpy.ops.object.mode_set(mode="OBJECT")
    drawn()
    assert (items()[0].transforms == np.eye(3, 4)).all()


def test_damaged_rigs_stand_at_rest_and_say_so(drawn):
    object, _ = rigged()
    object.data.attributes.remove(object.data.attributes["skin:weight_0"])
    drawn()
    assert "skin:weight_0" in DRAWER.splats.problem and len(items()) == 1
    bpy.ops.wm.read_homefile(app_template="", use_empty=True)
    object, _ = rigged()
    group = find_modifier(object, DEFORM).node_group
    group.nodes.remove(group.nodes["Bind"])
    drawn()
    assert "bar" in DRAWER.splats.problem
    assert len(items()) == 1 and items()[0].transforms is None


def test_skins_of_bones_that_are_not_there_stand_at_rest_and_say_so(drawn):
    object, _ = rigged()
    object.data.attributes["skin:index_0"].data[3].value = 999
    object.data.update_tag()
    drawn()
    assert "names a missing bone 999" in DRAWER.splats.problem and "bar" in DRAWER.splats.problem
    assert len(bone_moves(DRAWER.splats.atlas, items())[0]) == 0


def test_points_that_are_splats_no_more_stop_no_others(drawn):
    object, _ = plain("other"), rigged()
    drawn()
    attribute = object.data.attributes["rotation"]
    turns = np.empty(4 * len(object.data.points), np.float32)
    attribute.data.foreach_get("value", turns)
    object.data.attributes.remove(attribute)
    drawn()
    assert [subject.name for subject in DRAWER.splats.subjects] == ["bar"] and len(items()) == 1
    again = object.data.attributes.new("rotation", "QUATERNION", "POINT")
    again.data.foreach_set("value", turns)
    object.data.update_tag()
    drawn()
    assert [subject.name for subject in DRAWER.splats.subjects] == ["bar", "other"] and len(items()) == 2


def test_captures_play(drawn):
    object = playing()
    drawn()
    read = DRAWER.splats
    for frame in (3, 5, 4):
        bpy.context.scene.frame_set(frame)
        assert drawn() == ["read", "build"]
        expected = posed_cloud(bpy.context.view_layer.depsgraph, object, "OBJECT")
        source = read._read[object.session_uid].source
        assert_equal_bits(source.cloud, expected)
    object.select_set(not object.select_get())
    assert drawn() == []


@pytest.mark.parametrize("switch", ("eye", "disabled"))
def test_hidden_captures_cost_nothing_and_are_not_late(drawn, switch):
    object = playing()

    def hide(on):
        object.hide_set(on) if switch == "eye" else setattr(object, "hide_viewport", on)

    drawn()
    hide(True)
    bpy.context.scene.frame_set(4)
    assert drawn() == []
    hide(False)
    assert drawn() == ["read", "build"]
    expected = posed_cloud(bpy.context.view_layer.depsgraph, object, "OBJECT")
    assert_equal_bits(DRAWER.splats._read[object.session_uid].source.cloud, expected)


def test_other_files_are_forgotten(drawn):
    rigged()
    drawn()
    bpy.ops.wm.read_homefile(app_template="", use_empty=True)
    assert not DRAWER.scenes and not DRAWER.views
    assert drawn() == [] and items() == []


def test_handlers_are_registered_once_and_removed(addon):
    for event, function in lifecycle._HANDLERS:
        assert getattr(bpy.app.handlers, event).count(function) == 1
    lifecycle.unregister()
    try:
        for event, function in lifecycle._HANDLERS:
            assert function not in getattr(bpy.app.handlers, event)
    finally:
        lifecycle.register()


def test_handlers_of_a_render_only_take_notes(drawn):
    """Frames of a render change in its thread: nothing of the GPU may be freed or made there."""
    from threading import Thread

    playing()
    drawn()
    atlas, subjects = DRAWER.splats.atlas, DRAWER.splats.subjects
    depsgraph = bpy.context.view_layer.depsgraph
    threads = [Thread(target=f, args=(bpy.context.scene, depsgraph)) for f in (lifecycle._after_frame,) * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert DRAWER.splats.atlas is atlas and DRAWER.splats.subjects is subjects
    assert drawn() == ["read"]
