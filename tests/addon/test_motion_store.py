"""What a rig has learned stays with its armature: in the .blend, or beside it where it is large."""

from contextlib import contextmanager

import bpy
import numpy as np
import pytest
from rigs import make_capture, make_cloud, make_rig, make_skin_of

from gaussianimate.core.errors import FormatError, RigError
from gaussianimate.core.motion.learned import learn_motion
from gaussianimate.gaussianimate_addon import motion_files, motion_store
from gaussianimate.gaussianimate_addon.capture_object import create_capture_object
from gaussianimate.gaussianimate_addon.motion_files import BYTES, MOTION
from gaussianimate.gaussianimate_addon.motion_store import (
    forget_motion,
    has_motion,
    kept_rests,
    load_motion,
    motion_digest,
    store_motion,
    stored_rig,
)
from gaussianimate.gaussianimate_addon.rig_object import apply_rig


@pytest.fixture
def learned(empty_scene):
    """Splats, armature and rig, with the motion stored."""
    cloud = make_cloud(150)
    rig = make_rig(cloud)
    capture = make_capture(cloud, rig)
    object = create_capture_object(bpy.context, capture, capture.load_cloud(0), "y")
    return object, apply_rig(bpy.context, object, rig, make_skin_of(rig), learn_motion(rig)), rig


def assert_is_the_rig(object, armature, rig):
    again = stored_rig(object, armature)
    np.testing.assert_allclose(again.bone_transforms, rig.bone_transforms, atol=1e-5)
    assert again.joint_names == rig.joint_names and np.array_equal(again.frames, rig.frames)


def again(path):
    """Open a file; its splats and armature."""
    bpy.ops.wm.open_mainfile(filepath=str(path))
    armature = next(object for object in bpy.data.objects if object.type == "ARMATURE")
    return next(child for child in armature.children if child.type == "POINTCLOUD"), armature


def test_the_rig_is_kept_with_the_armature(learned, tmp_path):
    object, armature, rig = learned
    assert_is_the_rig(object, armature, rig)
    rests = kept_rests(armature)[1]
    assert sorted(rests) == list(range(rig.bone_count))
    path = tmp_path / "rig.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    assert [each.name for each in tmp_path.iterdir()] == ["rig.blend"]
    assert_is_the_rig(*again(path), rig)


def test_a_large_motion_lies_beside_the_file(learned, tmp_path, monkeypatch):
    monkeypatch.setattr(motion_files, "LARGEST", 1000)
    *_, rig = learned
    first, second = tmp_path / "one" / "first.blend", tmp_path / "two" / "second.blend"
    for path in (first, second):  # saved elsewhere, it goes along
        path.parent.mkdir()
        bpy.ops.wm.save_as_mainfile(filepath=str(path))
        assert len(list(path.parent.glob("*.motion.npz"))) == 1
    for file in first.parent.iterdir():
        file.unlink()
    assert second.stat().st_size < 10_000_000
    object, armature = again(second)
    assert_is_the_rig(object, armature, rig)


def test_a_lost_file_is_named(learned, tmp_path, monkeypatch):
    monkeypatch.setattr(motion_files, "LARGEST", 1000)
    path = tmp_path / "rig.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    (beside,) = tmp_path.glob("*.motion.npz")
    packed = beside.read_bytes()
    beside.write_bytes(packed[:-100] + bytes(100))
    _, armature = again(path)
    with pytest.raises(RigError, match="is not the motion of"):
        load_motion(armature)
    beside.unlink()
    with pytest.raises(RigError, match="put it back"):
        load_motion(armature)
    bpy.ops.wm.save_mainfile()  # the file itself can be saved all the same
    beside.write_bytes(packed)
    assert load_motion(again(path)[1]).frames.shape == (8,)


def test_a_new_motion_replaces_the_old(learned):
    object, armature, rig = learned
    before = motion_digest(armature)
    motion = load_motion(armature)
    store_motion(armature, type(motion)(**{**vars(motion), "canonical_frame": 3}))
    assert motion_digest(armature) != before and load_motion(armature).canonical_frame == 3
    forget_motion(armature)
    assert not has_motion(armature) and motion_digest(armature) == ""
    with pytest.raises(RigError, match="build the rig again"):
        load_motion(armature)


def test_copies_and_appended_armatures_have_it_too(learned, tmp_path):
    object, armature, rig = learned
    copy = armature.copy()
    copy.data = armature.data.copy()
    assert_is_the_rig(object, copy, rig)
    path = tmp_path / "rig.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    bpy.ops.wm.read_homefile(app_template="", use_empty=True)
    for link in (False, True):
        with bpy.data.libraries.load(str(path), link=link) as (there, wanted):
            wanted.objects = [name for name in there.objects if name.endswith("rig")][:1]
        assert load_motion(wanted.objects[0]).frames.shape == (8,)


def test_damaged_bytes_in_the_blend_are_said(learned):
    _, armature, _ = learned
    text = armature.data[MOTION]["text"]
    packed = bytearray(text[BYTES])
    packed[len(packed) // 2] ^= 1
    motion_store._loaded.clear()
    for damaged in (bytes(packed), bytes(packed[:99]), "no bytes"):
        text[BYTES] = damaged
        with pytest.raises(RigError, match="damaged; build the rig again"):
            load_motion(armature)


def test_a_property_of_that_name_that_says_nothing_is_no_motion(learned, tmp_path):
    _, armature, _ = learned
    for nothing in (3, "motion", {"digest": "x"}):
        armature.data[MOTION] = nothing
        assert not has_motion(armature) and motion_digest(armature) == ""
        with pytest.raises(RigError, match="has learned no motion; build the rig again"):
            load_motion(armature)
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "rig.blend"), copy=True)
        forget_motion(armature)
        assert MOTION not in armature.data


def test_saving_a_copy_elsewhere_and_undoing_save_as_lose_nothing(learned, tmp_path, monkeypatch):
    monkeypatch.setattr(motion_files, "LARGEST", 1000)
    name = learned[1].name

    def reads():
        motion_store._loaded.clear()
        return load_motion(bpy.data.objects[name]).frames.shape == (8,)

    for folder in ("one", "two", "three"):
        (tmp_path / folder).mkdir()
    paths = [str(tmp_path / folder / "rig.blend") for folder in ("one", "two", "three")]
    bpy.ops.wm.save_as_mainfile(filepath=paths[0], copy=True)  # nothing was saved yet
    assert reads() and len(bpy.data.texts) == 1
    bpy.ops.wm.save_as_mainfile(filepath=paths[1])
    assert reads() and not bpy.data.texts
    bpy.ops.wm.save_as_mainfile(filepath=paths[2], copy=True)
    assert reads()
    bpy.ops.ed.undo_push(message="before")
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "moved.blend"))
    bpy.ops.ed.undo_push(message="after")
    bpy.ops.ed.undo()
    assert reads()
    bpy.ops.wm.save_mainfile()
    for path in (*paths, tmp_path / "moved.blend"):
        bpy.ops.wm.open_mainfile(filepath=str(path))
        assert reads() and not bpy.data.texts


def test_a_damaged_file_beside_the_blend_is_written_anew(learned, tmp_path, monkeypatch):
    monkeypatch.setattr(motion_files, "LARGEST", 1000)
    path = str(tmp_path / "rig.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path, copy=True)
    (beside,) = tmp_path.glob("*.motion.npz")
    beside.write_bytes(b"damaged")
    bpy.ops.wm.save_as_mainfile(filepath=path)
    assert load_motion(again(path)[1]).frames.shape == (8,)


def test_a_folder_that_cannot_be_written_leaves_it_packed(learned, tmp_path, monkeypatch):
    monkeypatch.setattr(motion_files, "LARGEST", 1000)

    @contextmanager
    def refused(path):
        raise FormatError(path, "the file cannot be written")
        yield

    monkeypatch.setattr(motion_files, "replacing", refused)
    path = str(tmp_path / "rig.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path)
    assert load_motion(again(path)[1]).frames.shape == (8,) and len(bpy.data.texts) == 1


@pytest.mark.parametrize("local", [False, True])
def test_appended_from_beside_a_file(learned, tmp_path, monkeypatch, local):
    monkeypatch.setattr(motion_files, "LARGEST", 1000)
    for folder in ("there", "here"):
        (tmp_path / folder).mkdir()
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "there" / "rig.blend"))
    bpy.ops.wm.read_homefile(app_template="", use_empty=True)
    with bpy.data.libraries.load(str(tmp_path / "there" / "rig.blend"), link=local) as (there, wanted):
        wanted.objects = [name for name in there.objects if name.endswith("rig")]
    (armature,) = wanted.objects
    bpy.context.scene.collection.objects.link(armature)
    if local:
        armature = armature.make_local()
        armature.data.make_local()
    assert load_motion(armature).frames.shape == (8,)
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "here" / "other.blend"))
    assert len(list((tmp_path / "here").glob("*.motion.npz"))) == 1
    for file in (tmp_path / "there").iterdir():
        file.unlink()
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "here" / "other.blend"))
    (armature,) = (object for object in bpy.data.objects if object.type == "ARMATURE")
    assert load_motion(armature).frames.shape == (8,)
