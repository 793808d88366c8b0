"""What the drawer reads of a scene, when it reads it anew, and in which order it draws."""

import bpy
import numpy as np
import pytest
from compare import assert_equal_bits
from mathutils import Matrix
from rigs import make_capture, make_cloud, make_rig
from scenes import IDENTITY, build, pose

from gaussianimate.gaussianimate_addon.bake import posed_cloud, skin_transforms
from gaussianimate.gaussianimate_addon.capture_object import create_capture_object
from gaussianimate.gaussianimate_addon.drawer import lifecycle, order, scene, viewport
from gaussianimate.gaussianimate_addon.drawer.display import drawn_objects, set_display
from gaussianimate.gaussianimate_addon.drawer.draw import bone_moves
from gaussianimate.gaussianimate_addon.drawer.poses import pose_reader, read_transforms
from gaussianimate.gaussianimate_addon.modifiers import DEFORM, find_modifier
from gaussianimate.gaussianimate_addon.point_cloud import cloud_to_point_cloud

PLACED = Matrix.LocRotScale((1, 2, 3), Matrix.Rotation(0.7, 3, "Y"), (1, 2, 0.5))
DRAWER = viewport.DRAWER


@pytest.fixture
def drawn(empty_scene, device, monkeypatch):
    """Return a function that updates what is drawn and says what it read and built for that."""
    log = []

    def record(name):
        function = getattr(scene, name)
        monkeypatch.setattr(scene, name, lambda *a: (log.append(name), function(*a))[1])

    record("read_source")
    record("build_atlas")
    DRAWER.reset()

    def done():
        bpy.context.view_layer.update()
        DRAWER.splats.update(drawn_objects, bpy.context.view_layer.depsgraph, "exact")
        names = [name.partition("_")[0] for name in log]
        log.clear()
        return names

    yield done
    DRAWER.reset()


def rigged(name="bar", count=50, **settings):
    object, armature, _ = build(bpy.context.scene, make_cloud(count), **settings)
    object.name = name
    set_display(object, "DRAWER")
    return object, armature


def plain(name, count=20, seed=1):
    object = bpy.data.objects.new(name, cloud_to_point_cloud(make_cloud(count, seed=seed), name))
    bpy.context.scene.collection.objects.link(object)
    set_display(object, "DRAWER")
    return object


def playing():
    cloud = make_cloud(60)
    object = create_capture_object(bpy.context, make_capture(cloud, make_rig(cloud)), cloud, "z")
    set_display(object, "DRAWER")
    return object


def items(space=None):
    return DRAWER.splats.items(bpy.context.view_layer.depsgraph, space)


def spaces():
    screens = bpy.data.screens
    return [a.spaces.active for screen in screens for a in screen.areas if a.type == "VIEW_3D"]


@pytest.mark.parametrize("place", (IDENTITY, PLACED))
@pytest.mark.parametrize("armature_place", (IDENTITY, PLACED))
def test_transforms_are_those_of_bakes(scene, place, armature_place):
    object, armature, _ = build(scene, object_world=place, armature_world=armature_place)
    reader = pose_reader(object)
    for seed in range(3):
        pose(armature, seed)
        object.location.x += 0.1
        bpy.context.view_layer.update()
        depsgraph = bpy.context.view_layer.depsgraph
        expected = skin_transforms(depsgraph, object)
        np.testing.assert_allclose(read_transforms(depsgraph, object, reader), expected, atol=1e-12)
    assert np.abs(expected - np.eye(3, 4)).max() > 0.1


def test_rest_pose_moves_nothing_at_all(scene):
    object, _, _ = build(scene, object_world=PLACED)
    depsgraph = bpy.context.view_layer.depsgraph
    transforms = read_transforms(depsgraph, object, pose_reader(object))
    assert (transforms == np.eye(3, 4)).all()


def test_no_pose_to_follow(scene):
    object, armature, _ = build(scene)
    pose(armature, 1)
    reader, depsgraph = pose_reader(object), bpy.context.view_layer.depsgraph
    object.scale = (0, 1, 1)
    bpy.context.view_layer.update()
    assert read_transforms(depsgraph, object, reader) is None
    object.scale = (1, 1, 1)
    for broken in (object, armature):
        broken.location.x = float("nan")
        bpy.context.view_layer.update()
        assert read_transforms(depsgraph, object, reader) is None
        broken.location.x = 0
    bpy.context.view_layer.update()
    assert read_transforms(depsgraph, object, reader) is not None
    bpy.data.objects.remove(armature)
    assert read_transforms(depsgraph, object, reader) is None


@pytest.mark.parametrize("switch", ("show_viewport", "show_render"))
def test_a_deformer_that_is_switched_off_poses_nothing(drawn, switch):
    object, armature = rigged()
    pose(armature, 1)
    setattr(find_modifier(object, DEFORM), switch, False)
    drawn()
    in_viewport, rendered = items(spaces()[0])[0], items()[0]
    assert (in_viewport.transforms is None) == (switch == "show_viewport")
    assert (rendered.transforms is None) == (switch == "show_render")


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


def test_what_viewports_hide(drawn):
    object = plain("plain")
    space = spaces()[0]
    drawn()
    assert len(items(space)) == 1
    object.hide_set(True)
    drawn()
    assert items(space) == [] and len(items()) == 1, "renders mind no eye"
    object.hide_set(False)
    space.show_object_viewport_pointcloud = False
    drawn()
    assert items(space) == []
    space.show_object_viewport_pointcloud = True
    object.hide_render = True
    drawn()
    assert len(items(space)) == 1 and items() == []


def test_instances_of_collections(drawn):
    object = plain("plain")
    holder = bpy.data.collections.new("holder")
    bpy.context.scene.collection.children.link(holder)
    holder.objects.link(object)
    bpy.context.scene.collection.objects.unlink(object)
    empties = [bpy.data.objects.new(name, None) for name in "ab"]
    for i, empty in enumerate(empties):
        empty.instance_type, empty.instance_collection, empty.location = "COLLECTION", holder, (i + 1, 0, 0)
        bpy.context.scene.collection.objects.link(empty)
    drawn()
    space = spaces()[0]
    assert sorted(item.matrix[0, 3] for item in items(space)) == [0, 1, 2]
    empties[0].hide_set(True)
    bpy.context.view_layer.layer_collection.children["holder"].exclude = True
    drawn()
    assert [item.matrix[0, 3] for item in items(space)] == [2]
    bpy.data.objects.remove(empties[1])
    drawn()
    assert items(space) == []


def test_instances_of_geometry_nodes(drawn):
    object = plain("plain")
    group = bpy.data.node_groups.new("instances", "GeometryNodeTree")
    group.interface.new_socket("Geometry", in_out="OUTPUT", socket_type="NodeSocketGeometry")
    info, out = group.nodes.new("GeometryNodeObjectInfo"), group.nodes.new("NodeGroupOutput")
    info.inputs["Object"].default_value, info.inputs["As Instance"].default_value = object, True
    group.links.new(info.outputs["Geometry"], out.inputs[0])
    host = bpy.data.objects.new("host", bpy.data.meshes.new("host"))
    host.location = (5, 0, 0)
    bpy.context.scene.collection.objects.link(host)
    drawn()
    host.modifiers.new("instances", "NODES").node_group = group
    drawn()
    assert sorted(item.matrix[0, 3] for item in items(spaces()[0])) == [0, 5]


def test_scenes_have_their_own_objects(drawn):
    shared, own = plain("shared"), plain("own")
    other = bpy.data.scenes.new("other")
    other.collection.objects.link(shared)
    drawn()
    assert {s.name for s in DRAWER.splats.subjects} == {"shared", "own"}
    splats = scene.SceneSplats()
    layer = other.view_layers[0]
    layer.update()
    splats.update(drawn_objects, layer.depsgraph, "exact")
    assert [s.name for s in splats.subjects] == ["shared"]
    assert len(splats.items(layer.depsgraph)) == 1 and own.name not in other.objects


@pytest.mark.parametrize("matrix", (Matrix.Diagonal((0, 0, 0, 1)), Matrix.Translation((float("nan"), 0, 0))))
def test_objects_without_a_place_are_not_drawn(drawn, matrix):
    object, _ = rigged()
    object.matrix_world = matrix
    drawn()
    assert items() == [] and DRAWER.splats.atlas is not None


def test_no_splats_at_all(drawn):
    from pictures import perspective

    from gaussianimate.gaussianimate_addon.drawer.offscreen import draw_picture

    plain("empty", count=0)
    drawn()
    assert not draw_picture(DRAWER.splats.atlas, items(), perspective()).rgba.any()


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


def test_order_is_sorted_in_a_thread_and_taken_over(drawn):
    from pictures import perspective

    rigged(count=500)
    drawn()
    atlas, camera, started = DRAWER.splats.atlas, perspective(), []
    view, shown = order.ViewOrder(), items()

    def follow(camera):
        moves = bone_moves(atlas, shown)
        view.follow(atlas, shown, moves, camera, lambda: started.append(1))
        return order.sort([atlas.spans[0]], order.order_key(atlas, shown, moves, camera))

    expected = follow(camera)
    assert not started and view.version == 1 and view.count == len(expected), "the first one is waited for"
    follow(camera)
    assert not started and view.version == 1
    turned = _turned(camera)
    expected = follow(turned)
    assert started == [1] and view.version == 1 and view.waiting
    view._pending[1].result(timeout=10)
    assert view.finished
    follow(turned)
    assert view.version == 2 and not view.waiting and started == [1]
    read = np.array(view.texture.read(), np.float32).ravel()[: view.count]
    np.testing.assert_array_equal(read, expected)


def test_a_sort_of_splats_that_are_gone_is_dropped(drawn):
    from pictures import perspective

    rigged(count=500)
    drawn()
    view, camera = order.ViewOrder(), perspective()
    atlas = DRAWER.splats.atlas
    view.follow(atlas, items(), bone_moves(atlas, items()), camera, lambda: None)
    view.follow(atlas, items(), bone_moves(atlas, items()), _turned(camera), lambda: None)
    assert view.waiting
    plain("other")
    drawn()
    both = DRAWER.splats.atlas
    assert both is not atlas
    view.follow(both, items(), bone_moves(both, items()), camera, lambda: None)
    assert not view.waiting and view.version == 2 and view.count > 500


def _turned(camera):
    from dataclasses import replace

    return replace(camera, view=np.array(Matrix.Rotation(0.2, 4, "Y")) @ camera.view)
