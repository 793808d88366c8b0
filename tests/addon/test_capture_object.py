"""Captures as native data: they play without this add-on, and come back as they were."""

from dataclasses import replace

import bpy
import numpy as np
import pytest
from compare import assert_equal_bits, evaluated
from rigs import make_capture, make_cloud, make_rig

from gaussianimate.core.capture import Capture
from gaussianimate.core.errors import CaptureError
from gaussianimate.gaussianimate_addon import capture_frames
from gaussianimate.gaussianimate_addon.bake import posed_cloud
from gaussianimate.gaussianimate_addon.capture_frames import collect_frames, frames_object
from gaussianimate.gaussianimate_addon.capture_object import (
    capture_from_point_cloud,
    create_capture_object,
    is_capture_object,
    scene_frame,
    show_frame,
)


def changing_capture(invalid=(), degree=1):
    """Everything changes over time: place, shape, colour, opacity."""
    cloud = make_cloud(100, degree=degree)
    capture = make_capture(cloud, make_rig(cloud))
    clouds = []
    for f in range(capture.frame_count):
        c = capture.load_cloud(f)
        clouds.append(replace(c, opacities=c.opacities * (1 - 0.05 * f), sh=c.sh + 0.1 * f))
    valid, positions = capture.frame_valid.copy(), capture.positions.copy()
    valid[list(invalid)] = False
    positions[list(invalid)] = np.nan

    def load(frame):
        assert frame not in invalid, "nobody reads an empty frame"
        return clouds[frame]

    return replace(capture, load_cloud=load, frame_valid=valid, positions=positions)


def show(scene, frame):
    scene.frame_set(int(np.floor(frame)), subframe=frame % 1)


@pytest.mark.parametrize("degree", [0, 1])
def test_every_frame_is_shown_bit_by_bit(scene, degree):
    capture = changing_capture(degree=degree)
    object = create_capture_object(bpy.context, capture, capture.load_cloud(0), "z")
    for f in range(capture.frame_count):
        scene.frame_set(scene.frame_start + f)
        assert_equal_bits(evaluated(object), capture.load_cloud(f))


def test_first_and_last_frame_are_held(scene):
    capture = changing_capture()
    object = create_capture_object(bpy.context, capture, capture.load_cloud(0), "z")
    for frame, shown in ((-20, 0), (0, 0), (500, capture.frame_count - 1)):
        scene.frame_set(frame)
        assert_equal_bits(evaluated(object), capture.load_cloud(shown))


def test_empty_frames_show_nothing_and_playback_goes_on(scene):
    capture = changing_capture(invalid=(2, 5))
    object = create_capture_object(bpy.context, capture, capture.load_cloud(0), "z")
    for f in range(capture.frame_count):
        scene.frame_set(scene.frame_start + f)
        if f in (2, 5):
            data = object.evaluated_get(bpy.context.evaluated_depsgraph_get()).data
            assert len(data.points) == 0
            assert len(posed_cloud(bpy.context.evaluated_depsgraph_get(), object)) == 0
        else:
            assert_equal_bits(evaluated(object), capture.load_cloud(f))


@pytest.mark.parametrize("fps", [12, 24, 60])
def test_capture_time_is_scene_time(scene, fps):
    scene.render.fps, scene.frame_start = fps, 11
    capture = changing_capture()
    object = create_capture_object(bpy.context, capture, capture.load_cloud(0), "z")
    for f in range(capture.frame_count):
        assert scene_frame(object, f) == pytest.approx(11 + f * fps / 24)
        show(scene, scene_frame(object, f))
        assert_equal_bits(evaluated(object), capture.load_cloud(f))


def test_capture_comes_back(scene):
    capture = changing_capture(invalid=(3,))
    capture = replace(capture, notes=("one thing", "another"))
    object = create_capture_object(bpy.context, capture, capture.load_cloud(0), "y")
    back = capture_from_point_cloud(object)
    np.testing.assert_array_equal(back.positions, capture.positions)
    np.testing.assert_array_equal(back.frame_valid, capture.frame_valid)
    assert (back.name, back.fps, back.up, back.notes) == ("bar", 24, "y", ("one thing", "another"))
    for f in (0, 1, 7):
        assert_equal_bits(back.load_cloud(f), capture.load_cloud(f))


def test_mesh_faces_come_back(scene):
    cloud = make_cloud(30)
    faces = np.arange(30, dtype=np.int32).reshape(-1, 3)
    trajectory = np.stack([cloud.positions, cloud.positions + np.float32(1)])
    capture = Capture("mesh", trajectory, np.ones(2, bool), faces=faces)
    object = create_capture_object(bpy.context, capture, cloud, "z")
    back = capture_from_point_cloud(object)
    np.testing.assert_array_equal(back.faces, faces)
    assert back.fps == 24  # the scene's, as the source does not say
    scene.frame_set(2)
    assert_equal_bits(evaluated(object), replace(cloud, positions=trajectory[1]))


def test_only_what_varies_is_stored(scene):
    cloud = make_cloud(30)
    positions = np.stack([cloud.positions, cloud.positions + np.float32(1)])
    capture = Capture(
        "c", positions, np.ones(2, bool), load_cloud=lambda f: replace(cloud, positions=positions[f])
    )
    object = create_capture_object(bpy.context, capture, cloud, "z")
    assert [a.name for a in frames_object(object).data.attributes] == ["position"]


def test_too_large_colours_are_left_out_and_noted(scene, monkeypatch):
    monkeypatch.setattr(capture_frames, "SH_BUDGET", 1000)
    capture = changing_capture()
    frames = collect_frames(capture, capture.load_cloud(0))
    assert set(frames.varying) == {"rotation", "scale", "radiance:base"}
    assert len(frames.notes) == 1


@pytest.mark.parametrize("axis, up", [("y", (0, 1, 0)), ("z", (0, 0, 1)), ("-y", (0, -1, 0))])
def test_axis_is_on_the_object_and_undone_on_export(scene, axis, up):
    capture = changing_capture()
    object = create_capture_object(bpy.context, capture, capture.load_cloud(0), axis)
    np.testing.assert_allclose(np.array(object.matrix_world)[:3, :3] @ up, [0, 0, 1], atol=1e-6)
    assert np.linalg.det(np.array(object.matrix_world)[:3, :3]) == pytest.approx(1)
    scene.frame_set(scene.frame_start + 4)
    assert_equal_bits(posed_cloud(bpy.context.evaluated_depsgraph_get(), object), capture.load_cloud(4))


def test_unknown_axis_leaves_nothing_behind(scene):
    capture = changing_capture()
    with pytest.raises(CaptureError, match="sideways"):
        create_capture_object(bpy.context, capture, capture.load_cloud(0), "sideways")
    assert not bpy.data.objects and not bpy.data.pointclouds


def test_any_frame_can_be_the_rest_state(scene):
    capture = changing_capture(invalid=(3,))
    object = create_capture_object(bpy.context, capture, capture.load_cloud(0), "z")
    show_frame(object, 5)
    scene.frame_set(scene.frame_start + 6)
    assert_equal_bits(evaluated(object), capture.load_cloud(6))
    object.modifiers[0].show_viewport = False
    assert_equal_bits(evaluated(object), capture.load_cloud(5))
    for frame in (3, 99):
        with pytest.raises(CaptureError, match=str(frame)):
            show_frame(object, frame)


def test_other_objects_are_no_captures(scene):
    empty = bpy.data.objects.new("empty", None)
    assert not is_capture_object(None) and not is_capture_object(empty)


def test_one_frame_is_a_capture_too(scene):
    cloud = make_cloud(30)
    capture = Capture("still", cloud.positions[None], np.ones(1, bool), load_cloud=lambda f: cloud)
    object = create_capture_object(bpy.context, capture, cloud, "z")
    assert_equal_bits(evaluated(object), cloud)
    assert capture_from_point_cloud(object).frame_count == 1


def test_saved_file_holds_everything(scene, tmp_path):
    capture = changing_capture(invalid=(3,))
    create_capture_object(bpy.context, capture, capture.load_cloud(0), "-y")
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "saved.blend"))
    (tmp_path / "moved").mkdir()
    moved = (tmp_path / "saved.blend").rename(tmp_path / "moved" / "кадр.blend")
    bpy.ops.wm.open_mainfile(filepath=str(moved))
    object = bpy.data.objects["bar"]
    assert frames_object(object) is not None
    bpy.context.scene.frame_set(5)
    assert_equal_bits(evaluated(object), capture.load_cloud(4))
    np.testing.assert_array_equal(capture_from_point_cloud(object).positions, capture.positions)


def test_appended_object_brings_its_frames(scene, tmp_path):
    capture = changing_capture()
    create_capture_object(bpy.context, capture, capture.load_cloud(0), "z")
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "saved.blend"))
    bpy.ops.wm.read_homefile(app_template="", use_empty=True)
    with bpy.data.libraries.load(str(tmp_path / "saved.blend"), link=False) as (_, wanted):
        wanted.objects = ["bar"]
    object = wanted.objects[0]
    bpy.context.scene.collection.objects.link(object)
    bpy.context.scene.frame_set(6)
    assert_equal_bits(evaluated(object), capture.load_cloud(5))
