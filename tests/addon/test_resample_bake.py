"""Bakes that resample on the way out: one rest cloud for all frames, and a scene that stays as it is."""

import bpy
import numpy as np
import pytest
from drawn_weights import add_splats
from resampling import EPSILON, assert_same_values, keyed_bar, ops, values, whole

from gaussianimate.core.deform.deform import deform_cloud
from gaussianimate.core.formats import read_cloud
from gaussianimate.core.resample.resample import ResampleOptions, resample
from gaussianimate.gaussianimate_addon.bake import rest_splats, skin_transforms


@pytest.fixture
def bar(empty_scene):
    """A bar whose second joint folds from frame 1 to 5."""
    object, armature = keyed_bar(empty_scene, {1: 0.0, 5: 1.6})
    empty_scene.frame_set(2)
    return object, armature


def poses(object, frames):
    found = []
    for frame in frames:
        bpy.context.scene.frame_set(frame)
        found.append(skin_transforms(bpy.context.evaluated_depsgraph_get(), object))
    bpy.context.scene.frame_set(2)
    return np.stack(found)


def written(folder, name="bar"):
    return [read_cloud(path)[0] for path in sorted(folder.glob(f"{name}_*.ply"))]


def test_one_cloud_for_all_frames(bar, tmp_path):
    object, _ = bar
    rest, transforms, before = rest_splats(object), poses(object, range(1, 6)), values(object.data)
    found = resample(rest.cloud, rest.skin, transforms, ResampleOptions(EPSILON))
    assert len(found.cloud) > 220
    done = ops.bake_ply(
        filepath=f"{tmp_path}/", frame_start=1, frame_end=5, space="OBJECT", resample=True, epsilon=EPSILON
    )
    assert done == {"FINISHED"}
    clouds = written(tmp_path)
    assert [len(cloud) for cloud in clouds] == [len(found.cloud)] * 5
    for cloud, pose in zip(clouds, transforms, strict=True):
        truth = deform_cloud(found.cloud, found.skin, pose)
        np.testing.assert_allclose(cloud.positions, truth.positions, atol=1e-5)
        np.testing.assert_allclose(np.sort(cloud.scales), np.sort(truth.scales), rtol=1e-4)
    assert_same_values(values(object.data), before)
    assert whole(object) is None and bpy.context.scene.frame_current == 2
    assert len(bpy.data.pointclouds) == 1


def test_an_epsilon_is_found(bar, tmp_path, capfd):
    object, _ = bar
    rest = rest_splats(object)
    found = resample(rest.cloud, rest.skin, poses(object, [5]))
    ops.bake_ply(filepath=str(tmp_path / "one.ply"), frame_start=5, space="OBJECT", resample=True)
    assert len(read_cloud(tmp_path / "one.ply")[0]) == len(found.cloud) > 200
    split, said = (np.bincount(found.origins) > 1).sum(), capfd.readouterr().out
    assert f"{split} of 200 splats" in said
    assert f"split, {len(found.cloud)} after, epsilon {found.epsilon:.3g} m" in said


def test_resampled_splats_are_baked_as_they_are_or_anew(bar, tmp_path):
    object, _ = bar
    ops.resample(mode="ACTION", epsilon=EPSILON)
    count = len(object.data.points)
    ops.bake_ply(filepath=str(tmp_path / "as_is.ply"), frame_start=5)
    assert len(read_cloud(tmp_path / "as_is.ply")[0]) == count
    ops.bake_ply(filepath=str(tmp_path / "anew.ply"), frame_start=1, resample=True, epsilon=EPSILON)
    assert len(read_cloud(tmp_path / "anew.ply")[0]) == 200, "nothing is bent in the first frame"
    assert len(object.data.points) == count


def test_the_budget_counts(bar, tmp_path):
    ops.bake_ply(filepath=str(tmp_path / "x.ply"), frame_start=5, resample=True, epsilon=0.005, budget=1.2)
    assert 230 < len(read_cloud(tmp_path / "x.ply")[0]) <= 240


def test_what_nothing_poses_is_refused(empty_scene, tmp_path):
    add_splats(empty_scene)
    with pytest.raises(RuntimeError, match="'bar' is not rigged, so no pose bends its splats"):
        ops.bake_ply(filepath=str(tmp_path / "new folder" / "x.ply"), resample=True)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("resample", [False, True])
def test_frames_that_blender_does_not_have_are_refused(bar, tmp_path, resample):
    """It would show its last frame for all of them."""
    with pytest.raises(RuntimeError, match="frames from -1048574 to 1048574, and none of number -2147483648"):
        ops.bake_ply(
            filepath=f"{tmp_path}/new/", frame_start=-(2**31), frame_end=2**31 - 1, resample=resample
        )
    assert not list(tmp_path.iterdir())
