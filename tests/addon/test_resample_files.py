"""Resampled splats that are shared, copied, saved, appended, moved, or those of a capture."""

import bpy
import numpy as np
import pytest
from compare import assert_same_splats, evaluated
from drawn_weights import select
from mathutils import Matrix
from resampling import EPSILON, assert_same_values, bent_bar, large, ops, origins, values, whole
from rigs import make_capture, make_cloud, make_rig, make_skin_of
from scenes import reopened

from gaussianimate.gaussianimate_addon.bake import posed_cloud
from gaussianimate.gaussianimate_addon.bind import bind_is_stale
from gaussianimate.gaussianimate_addon.capture_frames import load_frames
from gaussianimate.gaussianimate_addon.capture_object import create_capture_object
from gaussianimate.gaussianimate_addon.modifiers import set_input
from gaussianimate.gaussianimate_addon.point_cloud import point_cloud_to_cloud
from gaussianimate.gaussianimate_addon.rig_object import apply_rig
from gaussianimate.gaussianimate_addon.skin_attributes import read_skin


@pytest.fixture
def bar(empty_scene):
    return bent_bar(empty_scene)


def posed(object):
    return posed_cloud(bpy.context.evaluated_depsgraph_get(), object, "OBJECT")


def copied(object, linked):
    other = object.copy()
    if not linked:
        other.data = object.data.copy()
    bpy.context.scene.collection.objects.link(other)
    bpy.context.view_layer.update()
    return other


def test_linked_duplicates_follow(bar):
    object, _ = bar
    other = copied(object, linked=True)
    ops.resample(epsilon=EPSILON)
    assert other.data == object.data and len(other.data.points) > 200
    for each in (object, other):
        assert bind_is_stale(each) is None
        assert_same_splats(evaluated(each), posed(each))
    ops.restore_splats()
    assert other.data == object.data and bind_is_stale(other) is None


def test_instances_show_what_is_shown(bar):
    object, _ = bar
    collection = bpy.data.collections.new("bars")
    collection.objects.link(object)
    empty = bpy.data.objects.new("instance", None)
    empty.instance_type, empty.instance_collection = "COLLECTION", collection
    bpy.context.scene.collection.objects.link(empty)

    def counts():
        graph = bpy.context.evaluated_depsgraph_get()
        return [len(i.object.data.points) for i in graph.object_instances if i.object.type == "POINTCLOUD"]

    assert counts() == [200, 200]
    ops.resample(epsilon=EPSILON)
    assert counts() == [len(object.data.points)] * 2
    ops.restore_splats()
    assert counts() == [200, 200]


def test_a_duplicate_on_an_armature_of_its_own_follows_too(bar):
    object, armature = bar
    other, its_own = copied(object, linked=True), armature.copy()
    bpy.context.scene.collection.objects.link(its_own)
    select(other)
    bpy.context.view_layer.update()
    modifier = next(m for m in other.modifiers if m.node_group.get("gaussianimate_role") == "Deform")
    set_input(modifier, "Armature", its_own)
    for bone in its_own.pose.bones:
        bone.matrix_basis.identity()
    bpy.context.view_layer.update()
    assert ops.resample(epsilon=EPSILON) == {"FINISHED"} and whole(other) is None, "its own pose is rest"
    select(object)
    ops.resample(epsilon=EPSILON)
    assert whole(other) is not None and bind_is_stale(other) is None
    assert_same_splats(evaluated(other), posed(other))


def test_copies_go_their_own_way(bar):
    object, _ = bar
    before = values(object.data)
    ops.resample(epsilon=EPSILON)
    other = copied(object, linked=False)
    after = values(other.data)
    assert whole(other) == whole(object) and whole(object).users == 2
    ops.restore_splats()
    assert_same_values(values(object.data), before)
    assert_same_values(values(other.data), after)
    assert len(whole(other).points) == 200 and whole(other) != object.data
    select(other)
    ops.restore_splats()
    assert_same_values(values(other.data), before)
    assert len(bpy.data.pointclouds) == 2


def test_a_deleted_object_takes_the_whole_splats_along(bar, tmp_path):
    object, _ = bar
    ops.resample(epsilon=EPSILON)
    bpy.data.objects.remove(object)
    for _ in range(2):  # Blender frees what nothing uses each time, and with it what that used
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "gone.blend"))
        bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "gone.blend"))
    assert not bpy.data.pointclouds


def test_files_keep_both(bar, tmp_path):
    object, _ = bar
    before = values(object.data)
    ops.resample(epsilon=EPSILON)
    after, path = values(object.data), str(tmp_path / "bar.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path)
    bpy.ops.wm.open_mainfile(filepath=path)
    object = bpy.data.objects["bar"]
    assert_same_values(values(object.data), after)
    assert_same_splats(evaluated(object), posed(object))
    select(object)
    ops.restore_splats()
    assert_same_values(values(object.data), before)

    bpy.ops.wm.read_homefile(app_template="", use_empty=True)
    with bpy.data.libraries.load(path) as (_, wanted):
        wanted.objects = ["bar"]
    object = wanted.objects[0]
    bpy.context.scene.collection.objects.link(object)
    select(object)
    assert_same_values(values(object.data), after)
    ops.restore_splats()
    assert_same_values(values(object.data), before)


def test_linked_splats_are_refused(bar, tmp_path):
    (object,) = reopened(str(tmp_path / "bar.blend"), "bar")
    bpy.context.view_layer.objects.active = object
    with pytest.raises(RuntimeError, match="'bar' is linked from another file"):
        ops.resample(epsilon=EPSILON)


@pytest.mark.parametrize("name", ["x" * 300, "длинное имя" * 30, "bar"])
def test_names_are_kept(bar, name):
    object, _ = bar
    object.data.name = name
    before = object.data.name
    ops.resample(epsilon=EPSILON)
    assert object.data.name == before and whole(object).name.endswith(".whole")
    ops.restore_splats()
    assert object.data.name == before


def test_splats_that_override_linked_ones_are_refused(bar, tmp_path):
    """Blender would not save what is done to them."""
    linked, _ = reopened(str(tmp_path / "bar.blend"), "bar", "rig")
    object = linked.override_create(remap_local_usages=True)
    object.data.override_create(remap_local_usages=True)
    select(object)
    assert object.data.library is None and object.library is None
    for operator in (ops.resample, ops.estimate_gradients, ops.add_selection_layer):
        with pytest.raises(
            RuntimeError, match="The splats 'bar' override those of another file, and what is"
        ):
            operator()
    bpy.ops.object.make_local(type="SELECT_OBDATA")
    assert ops.resample(mode="UNIFORM") == {"FINISHED"}
    assert len(bpy.context.object.data.points) == 5 * len(whole(bpy.context.object).points)


def test_materials_and_custom_properties_stay(bar):
    object, _ = bar
    object.data["mine"] = [1, 2, 3]
    object.data.materials.append(bpy.data.materials.new("red"))
    ops.resample(epsilon=EPSILON)
    assert list(object.data["mine"]) == [1, 2, 3] and object.data.materials[-1].name == "red"
    object.data.materials[-1] = bpy.data.materials.new("blue")
    ops.resample(epsilon=EPSILON / 2)
    assert list(object.data["mine"]) == [1, 2, 3] and object.data.materials[-1].name == "blue"
    ops.restore_splats()
    assert object.data.materials[-1].name == "blue"


def test_an_applied_transform_moves_the_whole_splats_too(bar):
    """Resampled, then applied: the whole splats come back where they would be had they been applied."""
    object, _ = bar
    applied = copied(object, linked=False)
    turn = (
        Matrix.Translation((1, 2, 0.5)) @ Matrix.Rotation(0.6, 4, "Y") @ Matrix.Diagonal((1.5, 1.5, 1.5, 1))
    )
    for each in (object, applied):
        each.matrix_basis = turn @ each.matrix_basis
    bpy.context.view_layer.update()
    ops.resample(epsilon=EPSILON)
    select(applied)
    ops.apply_transform()
    select(object)
    ops.apply_transform()
    ops.restore_splats()
    assert_same_splats(point_cloud_to_cloud(object.data), point_cloud_to_cloud(applied.data))
    one, other = read_skin(object.data), read_skin(applied.data)
    np.testing.assert_array_equal(one.weights, other.weights)
    np.testing.assert_allclose(one.gradients, other.gradients, atol=1e-4 * np.abs(other.gradients).max())
    assert bind_is_stale(object) is None


@pytest.fixture
def capture(empty_scene):
    """A rigged capture, and a copy that shares its splats and plays the frames."""
    cloud = large(make_cloud(150))
    rig = make_rig(cloud, frames=6)
    object = create_capture_object(bpy.context, make_capture(cloud, rig), cloud, "z")
    apply_rig(bpy.context, object, rig, make_skin_of(rig))
    bpy.context.scene.frame_set(3)
    select(object)
    return object


def test_a_rigged_capture_keeps_its_frames(capture):
    before, frames = values(capture.data), load_frames(capture).positions
    ops.resample(mode="ACTION", epsilon=EPSILON)
    assert len(capture.data.points) > 150
    assert_same_splats(evaluated(capture), posed(capture))
    with pytest.raises(RuntimeError, match="was resampled; restore its whole splats first"):
        ops.build_rig()
    capture.matrix_basis = Matrix.Scale(2, 4) @ capture.matrix_basis
    bpy.context.view_layer.update()
    ops.apply_transform()
    assert bind_is_stale(capture) is None
    ops.restore_splats()
    np.testing.assert_allclose(load_frames(capture).positions, 2 * frames, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(values(capture.data)["position"], 2 * before["position"], rtol=1e-4, atol=1e-4)


def test_learning_anew_asks_for_the_whole_splats(empty_scene):
    """What solves the captured motion again needs the splats that were captured."""
    from answering import learned_bar

    object, _, _ = learned_bar(empty_scene)
    scales = object.data.attributes["scale"].data
    scales.foreach_set("vector", np.full(450, 0.1, np.float32))
    other = create_capture_object(
        bpy.context, make_capture(cloud := make_cloud(150), make_rig(cloud)), cloud, "y"
    )
    ops.resample(mode="ACTION", epsilon=0.02)
    assert len(object.data.points) > 150
    for learn in (ops.refit_skeleton, lambda: ops.add_capture(source=other.name), ops.build_rig):
        with pytest.raises(RuntimeError, match="was resampled; restore its whole splats first"):
            learn()
    ops.restore_splats()
    assert ops.refit_skeleton() == {"FINISHED"}


def test_copies_that_play_the_frames_keep_whole_splats(capture):
    other = capture.copy()
    for modifier in list(other.modifiers):
        if modifier.node_group.get("gaussianimate_role") == "Deform":
            other.modifiers.remove(modifier)
        else:
            modifier.show_viewport = modifier.show_render = True
    bpy.context.scene.collection.objects.link(other)
    before = other.data
    ops.resample(mode="ACTION", epsilon=EPSILON)
    assert other.data == before == whole(capture) and len(load_frames(other).positions) == 6
    ops.restore_splats()
    assert len(capture.data.points) == 150 and len(other.data.points) == 150


def test_splats_that_are_not_finite_stay_as_they_are(bar):
    object, _ = bar
    for name, key in (("scale", "vector"), ("rotation", "value")):
        item = object.data.attributes[name].data[7 if name == "scale" else 9]
        setattr(item, key, [float("nan")] * len(getattr(item, key)))
    ops.resample(epsilon=EPSILON)
    rows = origins(object)
    assert len(rows) > 200 and (rows == 7).sum() == 1 and (rows == 9).sum() == 1


def test_a_splat_that_is_nowhere(empty_scene):
    """Its place is not finite from before the bind."""
    from drawn_weights import add_armature, add_splats

    object, armature = add_splats(empty_scene, cloud=large(make_cloud(100))), add_armature(empty_scene)
    object.data.attributes["position"].data[0].vector = [float("nan")] * 3
    select(object)
    ops.bind(armature=armature.name, method="ENVELOPE")
    armature.pose.bones["arm.L"].rotation_mode = "XYZ"
    armature.pose.bones["arm.L"].rotation_euler = (1, 0, 0.5)
    assert ops.resample(epsilon=0.03) == {"FINISHED"} and len(object.data.points) > 100
    assert (origins(object) == 0).sum() == 1 and bind_is_stale(object) is None
    ops.restore_splats()
    assert len(object.data.points) == 100


def test_no_splats(empty_scene):
    object, _ = bent_bar(empty_scene)
    object.data.resize(0)
    with pytest.raises(RuntimeError, match="'bar' has no splats to resample"):
        ops.resample(epsilon=EPSILON)
