"""Rig and motion files."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from gaussianimate.core.errors import RigError
from gaussianimate.core.rigging.motion_file import Motion, load_motion, save_motion
from gaussianimate.core.rigging.posing import outer_bone_transforms, posed_points, rows_for_cloud
from gaussianimate.core.rigging.rig import FIELDS, Rig
from gaussianimate.core.rigging.rig_file import is_rig, load_rig, save_rig


@pytest.fixture
def rig():
    rng = np.random.default_rng(0)
    rotations = np.tile([1.0, 0, 0, 0], (3, 3, 1))
    transforms = np.tile(np.eye(3, 4), (3, 2, 1, 1))
    transforms[:, :, :, 3] = rng.normal(size=(3, 2, 3))
    return Rig(
        rest=rng.normal(size=(5, 3)).astype(np.float32),
        indices=np.array([[0, 1], [1, 0], [0, 0], [1, 0], [0, 1]], dtype=np.int32),
        weights=np.array([[0.75, 0.25], [1, 0], [1, 0], [0.5, 0.5], [1, 0]], dtype=np.float32),
        bone_transforms=transforms,
        joint_names=("root", "arm é", "tip"),
        joint_parents=np.array([-1, 0, 1], dtype=np.int32),
        joint_positions=rng.normal(size=(3, 3)),
        bone_joints=np.array([0, 1], dtype=np.int32),
        joint_rotations=rotations,
        root_translations=np.zeros((3, 3)),
        frames=np.array([0, 2, 3], dtype=np.int32),
        fps=24.0,
        canonical_frame=2,
        bone_affinity=np.array([[1, 0, 0], [0.25, 0.75, 0]], dtype=np.float32),
    )


def test_a_rig_comes_back_bit_by_bit(rig, tmp_path):
    path = tmp_path / "a rig é.npz"
    save_rig(rig, path)
    again = load_rig(path)
    for name in FIELDS:
        one, other = getattr(rig, name), getattr(again, name)
        if isinstance(one, np.ndarray):
            assert one.dtype == other.dtype and (one == other).all(), name
        else:
            assert one == other, name
    assert is_rig(path) and [p.name for p in tmp_path.iterdir()] == [path.name]
    with np.load(path, allow_pickle=False) as archive:
        assert all(archive[name].dtype != object for name in archive.files)


def test_affinity_is_optional_and_unknown_keys_are_ignored(rig, tmp_path):
    path = tmp_path / "rig.npz"
    save_rig(replace(rig, bone_affinity=None), path)
    with np.load(path) as archive:
        arrays = dict(archive)
    np.savez(path, **arrays, later_addition=np.zeros(3))
    assert load_rig(path).bone_affinity is None


@pytest.mark.parametrize("missing", ["rest", "joint_parents", "version", "schema"])
def test_a_missing_key_is_named(rig, tmp_path, missing):
    path = tmp_path / "rig.npz"
    save_rig(rig, path)
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files if name != missing}
    np.savez(path, **arrays)
    with pytest.raises(RigError, match=rf"rig\.npz.*lacks {missing}"):
        load_rig(path)


def test_a_newer_version_says_what_to_do(rig, tmp_path):
    path = tmp_path / "rig.npz"
    save_rig(rig, path)
    with np.load(path) as archive:
        arrays = dict(archive)
    np.savez(path, **{**arrays, "version": np.int32(99)})
    with pytest.raises(RigError, match="newer GaussiAnimate.*update"):
        load_rig(path)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("weights", np.full((5, 2), 0.9, np.float32), "do not sum to 1"),
        ("indices", np.full((5, 2), 7, np.int32), "outside 0..1"),
        ("joint_parents", np.array([-1, 2, 1], np.int32), "parents before children"),
        ("bone_joints", np.array([0, 9], np.int32), "bone_joints"),
        ("joint_rotations", np.full((3, 3, 4), np.nan), "not finite"),
        ("root_translations", np.zeros((2, 3)), "root_translations has shape"),
        ("joint_names", ("a", "a", "b"), "different names"),
        ("fps", 0.0, "fps"),
    ],
)
def test_an_inconsistent_rig_is_never_written(rig, tmp_path, name, value, text):
    with pytest.raises(RigError, match=text):
        save_rig(replace(rig, **{name: value}), tmp_path / "rig.npz")
    assert not list(tmp_path.iterdir())


def test_what_is_no_rig_gets_one_sentence(tmp_path):
    for name, content in {"text.npz": b"hello", "empty.npz": b"", "cut.npz": b"PK\x03\x04cut"}.items():
        path = tmp_path / name
        path.write_bytes(content)
        assert not is_rig(path)
        with pytest.raises(RigError, match=name) as error:
            load_rig(path)
        assert "\n" not in str(error.value)
    if sys.platform == "linux":
        with pytest.raises(RigError, match=r"mem: cannot be read .Input/output error"):
            load_rig("/proc/self/mem")
    with pytest.raises(RigError, match="is a folder, not a rig"):
        load_rig(tmp_path)
    with pytest.raises(RigError, match="no such file"):
        load_rig(tmp_path / "none.npz")
    np.savez(tmp_path / "pickle.npz", rest=np.array([{}], dtype=object))
    with pytest.raises(RigError):
        load_rig(tmp_path / "pickle.npz")


def test_nothing_remains_where_writing_fails(rig, tmp_path):
    with pytest.raises(RigError, match="cannot be written"):
        save_rig(rig, tmp_path / "missing" / "rig.npz")
    assert not list(tmp_path.iterdir())


def test_a_motion_comes_back(rig, tmp_path):
    path = tmp_path / "motion.npz"
    save_motion(Motion(np.tile([2.0, 0, 0, 0], (4, 3, 1)), np.ones((4, 3)), 30.0), path)
    motion = load_motion(path, rig)
    assert (motion.rotations == [1, 0, 0, 0]).all() and motion.fps == 30
    np.savez(path, rotations=motion.rotations)
    assert (load_motion(path, rig).root_translations == 0).all()


def test_quaternions_of_a_motion_may_have_any_length(rig, tmp_path):
    half = np.sqrt(0.5)
    turns = np.tile([1.0, 0, 1.0, 0], (1, 3, 1))
    for length in (1e-5, 3.0, 1e200):
        np.savez(tmp_path / "motion.npz", rotations=length * turns)
        np.testing.assert_allclose(load_motion(tmp_path / "motion.npz", rig).rotations, half * turns)


@pytest.mark.parametrize(
    ("name", "change", "text"),
    [
        ("rest", lambda rest: rest.astype(float) + 1e300, "rest holds values that are not finite"),
        ("rest", lambda rest: rest.astype(complex), "rest holds complex128, not numbers"),
        ("rest", lambda rest: rest.astype("M8[s]"), "not numbers"),
        ("indices", lambda indices: indices.astype(int) + 2**40, "no 32-bit integers"),
        ("indices", lambda indices: indices + 0.5, "no 32-bit integers"),
        ("bone_transforms", lambda poses: poses + 1e300, "1e.300, more than single precision can"),
        ("joint_positions", lambda joints: joints + 1e39, "more than single precision can"),
        ("joint_rotations", np.zeros_like, "no unit quaternions"),
        ("joint_rotations", lambda turns: 2 * turns, "no unit quaternions"),
        ("joint_names", lambda names: np.append(names, names[:1]), "different names"),
        ("canonical_frame", lambda frame: frame.astype(int) + 2**40, "canonical_frame"),
        ("canonical_frame", lambda frame: frame * 0 - 1, "canonical_frame"),
        ("fps", lambda fps: np.array("fast"), "fast"),
    ],
)
def test_damaged_arrays_are_one_sentence(rig, tmp_path, name, change, text):
    path = tmp_path / "rig.npz"
    save_rig(rig, path)
    arrays = dict(np.load(path))
    np.savez(path, **{**arrays, name: change(arrays[name])})
    with pytest.raises(RigError, match=text) as error:
        load_rig(path)
    assert "\n" not in str(error.value) and "rig.npz" in str(error.value)


@pytest.mark.parametrize(
    ("arrays", "text"),
    [
        ({"root_translation": np.zeros((2, 3))}, "lacks rotations"),
        ({"rotations": np.zeros((2, 5, 4))}, r"needs \[frames, 3, 4\]"),
        ({"rotations": np.zeros((2, 3, 4))}, "zero quaternion"),
        ({"rotations": np.full((2, 3, 4), np.nan)}, "not finite"),
        ({"rotations": np.full((2, 3, 4), "a")}, "does not hold numbers"),
        ({"rotations": np.ones((2, 3, 4)), "root_translation": np.full((2, 3), 1e39)}, "too far for splats"),
        ({"rotations": np.ones((2, 3, 4)), "root_translation": np.zeros((3, 3))}, r"needs \[2, 3\]"),
    ],
)
def test_a_motion_that_does_not_fit_is_refused(rig, tmp_path, arrays, text):
    path = tmp_path / "motion.npz"
    np.savez(path, **arrays)
    with pytest.raises(RigError, match=text):
        load_motion(path, rig)


def test_the_rest_pose_is_exactly_the_rest_points(rig):
    transforms = outer_bone_transforms(rig, np.tile([1.0, 0, 0, 0], (1, 3, 1)), np.zeros((1, 3)))
    assert (transforms == np.eye(3, 4)).all()
    assert (posed_points(rig, transforms[0]) == rig.rest).all()


def test_a_cloud_takes_weights_of_the_nearest_points_and_must_lie_there(rig):
    assert rows_for_cloud(rig, rig.rest, "a.ply").tolist() == [0, 1, 2, 3, 4]
    assert rows_for_cloud(rig, rig.rest[[3, 1]] + 1e-4, "a.ply").tolist() == [3, 1]
    with pytest.raises(RigError, match=r"a\.ply does not fit the rig"):
        rows_for_cloud(rig, rig.rest + 50, "a.ply")


def test_a_single_array_is_no_archive(tmp_path):
    np.save(tmp_path / "array.npy", np.zeros(3))
    with pytest.raises(RigError, match="single array"):
        load_rig(tmp_path / "array.npy")


def test_damaged_files_are_said_in_one_sentence(rig, tmp_path):
    path = tmp_path / "rig.npz"
    save_rig(rig, path)
    packed, rng, said = path.read_bytes(), np.random.default_rng(0), set()
    for trial in range(300):
        damaged = bytearray(packed)
        damaged[int(rng.integers(-1500 if trial % 2 else -len(packed), 0))] = int(rng.integers(256))
        path.write_bytes(damaged)
        is_rig(path)
        try:
            load_rig(path)
        except RigError as error:
            said.add(str(error))
    assert len(said) > 5 and not any("\n" in each for each in said)
    path.write_bytes(b"anything else")
    with pytest.raises(RigError, match=r"is not a rig, or is damaged \(no numpy archive\)"):
        load_rig(path)
