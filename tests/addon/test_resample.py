"""Splats resampled in Blender: what they are afterwards, and what goes on working."""

import bpy
import numpy as np
import pytest
from compare import assert_equal_bits, assert_same_splats, evaluated
from drawn_weights import add_armature, dense, select
from resampling import EPSILON, assert_same_values, bent_bar, depths, ops, origins, values, whole

from gaussianimate.core.resample.resample import ResampleOptions, resample, split_all
from gaussianimate.gaussianimate_addon.bake import posed_cloud, rest_splats, skin_transforms
from gaussianimate.gaussianimate_addon.bind import bind_is_stale
from gaussianimate.gaussianimate_addon.drawer.viewport import DRAWER
from gaussianimate.gaussianimate_addon.point_cloud import point_cloud_to_cloud
from gaussianimate.gaussianimate_addon.resampling.digest import is_out_of_date
from gaussianimate.gaussianimate_addon.skin_attributes import read_skin


@pytest.fixture
def bar(empty_scene):
    return bent_bar(empty_scene)


def expected(object, epsilon=EPSILON, **options):
    """What core makes of the object's whole splats in the pose that stands."""
    rest = rest_splats(object)
    pose = skin_transforms(bpy.context.evaluated_depsgraph_get(), object)
    return resample(rest.cloud, rest.skin, pose, ResampleOptions(epsilon, **options))


def test_splats_are_those_of_core(bar):
    object, _ = bar
    found, before = expected(object), len(object.data.points)
    assert len(found.cloud) > before + 40
    assert ops.resample(epsilon=EPSILON) == {"FINISHED"}
    assert_equal_bits(point_cloud_to_cloud(object.data), found.cloud)
    assert_equal_bits(read_skin(object.data), found.skin)
    np.testing.assert_array_equal(origins(object), found.origins)
    np.testing.assert_array_equal(depths(object), found.depths)
    assert len(whole(object).points) == before and whole(object).users == 1


def test_nodes_pose_the_new_splats_as_core_does(bar):
    object, armature = bar
    ops.resample(epsilon=EPSILON)
    for seed in (1, 7):
        from scenes import pose

        pose(armature, seed)
        posed = posed_cloud(bpy.context.evaluated_depsgraph_get(), object, "OBJECT")
        assert_same_splats(evaluated(object), posed)
    assert bind_is_stale(object) is None


def test_every_attribute_is_carried(bar):
    object, _ = bar
    rng, data = np.random.default_rng(0), object.data
    kinds = "FLOAT INT INT8 BOOLEAN FLOAT2 FLOAT_VECTOR FLOAT4 FLOAT_COLOR BYTE_COLOR QUATERNION FLOAT4X4"
    for kind in f"{kinds} INT16_2D INT32_2D STRING".split():
        attribute = data.attributes.new(f"my {kind}", kind, "POINT")
        for item in attribute.data:
            if kind == "STRING":
                item.value = b"%d" % rng.integers(99)
                continue
            key = next(k for k in ("value", "vector", "color") if hasattr(item, k))
            width = np.size(np.array(getattr(item, key)))
            drawn = (
                rng.integers(0, 2, width) if kind in ("BOOLEAN", "BYTE_COLOR") else rng.integers(0, 99, width)
            )
            set_to = drawn.tolist() if width > 1 else type(getattr(item, key))(drawn[0])
            setattr(item, key, np.reshape(set_to, (4, 4)).tolist() if kind == "FLOAT4X4" else set_to)
    before = values(data)
    ops.resample(epsilon=EPSILON)
    after, rows = values(object.data), origins(object)
    mine = [name for name in before if name.startswith(("my ", "radiance:sh"))]
    assert len(mine) == 14 + 3
    for name in mine:
        np.testing.assert_array_equal(after[name], before[name][rows], err_msg=name)
    assert len({str(row) for row in before["my FLOAT4X4"]}) > 1


def test_whole_splats_come_back_bit_by_bit(bar):
    object, _ = bar
    before, name, data = values(object.data), object.data.name, len(bpy.data.pointclouds)
    ops.resample(epsilon=EPSILON)
    assert object.data.name == name and whole(object).name == f"{name}.whole"
    ops.resample(epsilon=EPSILON / 2)
    assert object.data.name == name and whole(object).name == f"{name}.whole"
    assert ops.restore_splats() == {"FINISHED"}
    assert_same_values(values(object.data), before)
    assert object.data.name == name and len(bpy.data.pointclouds) == data
    assert bind_is_stale(object) is None
    with pytest.raises(RuntimeError, match="'bar' was not resampled"):
        ops.restore_splats()


def test_another_resampling_starts_from_the_whole_splats(bar):
    object, armature = bar
    finer = expected(object, EPSILON / 3)
    ops.resample(epsilon=EPSILON)
    coarse = len(object.data.points)
    ops.resample(epsilon=EPSILON / 3)
    assert_equal_bits(point_cloud_to_cloud(object.data), finer.cloud)
    assert len(object.data.points) > coarse and len(bpy.data.pointclouds) == 2
    for bone in armature.pose.bones:
        bone.matrix_basis.identity()
    assert ops.resample(epsilon=EPSILON) == {"FINISHED"}, "at rest nothing bends"
    assert len(object.data.points) == 200 and whole(object) is None and len(bpy.data.pointclouds) == 1


def test_nothing_is_split_at_rest(bar, capfd):
    object, armature = bar
    for bone in armature.pose.bones:
        bone.matrix_basis.identity()
    data = object.data
    assert ops.resample(epsilon=1e-5) == {"FINISHED"}
    assert object.data == data and whole(object) is None and len(bpy.data.pointclouds) == 1
    ops.show_bent()
    said = capfd.readouterr().out
    assert "'bar': None of 200 splats is bent by more than 1e-05 m" in said
    assert "None of 200 splats sticks out enough to be split" in said
    assert DRAWER.overlay is None, "nothing to show"


def test_what_fails_halfway_leaves_all_as_it_was(bar, monkeypatch):
    from gaussianimate.gaussianimate_addon.resampling import exchange

    object, _ = bar
    other = object.copy()
    bpy.context.scene.collection.objects.link(other)
    data, before, calls = object.data, values(object.data), []

    def fail(object):
        calls.append(object)
        if len(calls) == 2:
            raise MemoryError

    monkeypatch.setattr(exchange, "remember_points", fail)
    with pytest.raises(RuntimeError, match="this computer has not enough free memory"):
        ops.resample(epsilon=EPSILON)
    assert object.data == other.data == data and [d.name for d in bpy.data.pointclouds] == ["bar"]
    assert_same_values(values(data), before)


def test_uniform_splits_every_splat_once(bar):
    object, _ = bar
    rest = rest_splats(object)
    ops.resample(mode="UNIFORM")
    assert_equal_bits(point_cloud_to_cloud(object.data), split_all(rest.cloud, rest.skin).cloud)
    assert set(np.bincount(origins(object))) == {5}


def test_uniform_says_when_a_budget_that_was_given_is_too_small(bar):
    object, _ = bar
    told = "Splitting every splat once makes 1,000 of 200, but a budget of 4.9 allows 980; set it to 5"
    for verb in (ops.resample, ops.show_bent):
        with pytest.raises(RuntimeError, match=told):
            verb(mode="UNIFORM", budget=4.9)
    assert whole(object) is None and len(object.data.points) == 200
    assert ops.resample(mode="UNIFORM", budget=5.0) == {"FINISHED"}
    assert len(object.data.points) == 1000
    ops.restore_splats()
    assert ops.resample(mode="UNIFORM") == {"FINISHED"}, "no budget is left over from before"
    assert len(object.data.points) == 1000


def test_one_undo_step(bar):
    object, _ = bar
    before = values(object.data)
    bpy.ops.ed.undo_push(message="before")
    ops.resample("EXEC_DEFAULT", True, epsilon=EPSILON)
    after = values(bpy.data.objects["bar"].data)
    bpy.ops.ed.undo()
    object = bpy.data.objects["bar"]
    assert_same_values(values(object.data), before)
    assert whole(object) is None and bind_is_stale(object) is None
    bpy.ops.ed.redo()
    object = bpy.data.objects["bar"]
    assert_same_values(values(object.data), after)
    assert bind_is_stale(object) is None and len(whole(object).points) == 200
    select(object)
    ops.restore_splats("EXEC_DEFAULT", True)
    assert_same_values(values(bpy.data.objects["bar"].data), before)
    bpy.ops.ed.undo()
    assert_same_values(values(bpy.data.objects["bar"].data), after)


def test_epsilon_is_in_metres_of_the_world(empty_scene):
    """The same bar a hundredth as large, as the world sees it, with a hundredth of the error."""
    from mathutils import Matrix

    object, _ = bent_bar(empty_scene)
    ops.resample(epsilon=EPSILON)
    small, _ = bent_bar(empty_scene, object_world=Matrix.Scale(0.01, 4), armature_world=Matrix.Scale(0.01, 4))
    ops.resample(epsilon=EPSILON / 100)
    assert small != object and np.array_equal(origins(small), origins(object))


def test_the_budget_is_kept_and_told(bar, capfd):
    object, _ = bar
    ops.resample(epsilon=0.001, budget=1.5)
    assert 280 <= len(object.data.points) <= 300
    assert "splats still bend by more than 0.001 m" in capfd.readouterr().out


def test_weights_bound_anew_make_it_out_of_date_and_reach_the_whole_splats(bar):
    object, _ = bar
    hand_made = add_armature(bpy.context.scene, object.matrix_world)
    select(object)
    ops.resample(epsilon=EPSILON)
    assert not is_out_of_date(object.data)
    ops.bind(armature=hand_made.name, method="ENVELOPE")
    assert is_out_of_date(object.data)
    ops.restore_splats()
    assert not is_out_of_date(object.data) and bind_is_stale(object) is None
    carried = dense(read_skin(object.data), 3)
    ops.bind(armature=hand_made.name, method="ENVELOPE")
    exact = dense(read_skin(object.data), 3)
    assert (
        0.2 < exact.max() and np.abs(carried - exact).max() < 0.1 and np.abs(carried - exact).mean() < 0.005
    )
