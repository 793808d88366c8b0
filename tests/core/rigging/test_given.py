"""Rigs on the skeleton a capture brings."""

import runpy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from gaussianimate.core.errors import CaptureError, RigError
from gaussianimate.core.formats import read_capture
from gaussianimate.core.given_skeleton import GivenSkeleton
from gaussianimate.core.rigging.build import RigOptions, build_rig
from gaussianimate.core.rigging.posing import outer_bone_transforms, posed_points
from gaussianimate.core.rigging.rig_file import load_rig, save_rig
from gaussianimate.core.rigging.skeleton.given import given_poses
from gaussianimate.core.rigging.skeleton.given_tree import mend_tree
from gaussianimate.core.rigging.skeleton.kinematics import joint_transforms
from gaussianimate.core.rigging.skeleton.tree import KinematicTree
from gaussianimate.core.rotations import (
    affine_inverse,
    affine_multiply,
    axis_angle_to_quaternion,
    quaternion_to_matrix,
)

synthetic = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("synthetic.py"))))
make_capture = synthetic.capture
CANONICAL = 7
DATA = Path(__file__).parents[4] / "shared" / "data"


@pytest.fixture(scope="module")
def chain():
    """A bent tube of three segments."""
    return synthetic.chain(3, count=24)


def given(chain, seed=1):
    """The tube's joints as a skeleton whose own rest pose is no frame of the capture."""
    rng = np.random.default_rng(seed)
    turns = axis_angle_to_quaternion(rng.normal(size=(3, 3)), rng.uniform(0.5, 1, 3))
    pose = joint_transforms(np.arange(-1, 2), chain["joints"], turns, rng.normal(size=3))
    rest = np.einsum("jab,jb->ja", pose[..., :3], chain["joints"]) + pose[..., 3]
    return GivenSkeleton.make(
        ["hip", "knee", "toe"], [-1, 0, 1], rest, affine_multiply(chain["transforms"], affine_inverse(pose))
    )


@pytest.fixture(scope="module")
def built(chain):
    """The rig of the tube on its own joints."""
    capture = replace(make_capture(chain["frames"]), skeleton=given(chain))
    return build_rig(capture, RigOptions(max_bones=3, canonical_frame=CANONICAL, skeleton="auto"))


def test_joints_stand_and_turn_as_given_from_the_rest_frame(chain, built):
    rig, truth = built.rig, chain["transforms"]
    stand = np.einsum("jab,jb->ja", truth[CANONICAL, :, :, :3], chain["joints"]) + truth[CANONICAL, :, :, 3]
    np.testing.assert_allclose(rig.joint_positions, stand, atol=1e-9)
    posed = joint_transforms(
        rig.joint_parents, rig.joint_positions, rig.joint_rotations, rig.root_translations
    )
    np.testing.assert_allclose(posed, affine_multiply(truth, affine_inverse(truth[CANONICAL])), atol=1e-9)
    np.testing.assert_allclose(posed[CANONICAL], np.broadcast_to(np.eye(3, 4), (3, 3, 4)), atol=1e-12)
    assert rig.joint_names == ("hip", "knee", "toe") and built.report.notes == ()


def test_bones_are_bound_where_the_points_move_and_the_error_is_theirs(chain, built):
    rig = built.rig
    assert sorted(rig.bone_joints.tolist()) == [0, 1, 2], "the last joint, which has no child, carries too"
    own = rig.bone_affinity[np.arange(3), rig.bone_joints]
    assert own.min() > 0.8
    poses = outer_bone_transforms(rig, rig.joint_rotations, rig.root_translations)
    miss = np.stack([posed_points(rig, pose) for pose in poses]) - chain["frames"]
    diagonal = np.linalg.norm(np.ptp(rig.rest, axis=0))
    error = 100 * np.sqrt((miss**2).sum(axis=-1).mean()) / diagonal
    assert error == pytest.approx(built.report.skeleton_rmse_percent, rel=1e-3) and error < 1


def test_further_motion_of_the_skeleton_poses_the_rig(chain, built, tmp_path):
    save_rig(built.rig, tmp_path / "rig.npz")
    rig, frames = load_rig(tmp_path / "rig.npz"), np.array([20, 3, 11])
    rotations, moves = given_poses(rig, given(chain).take_frames(frames))
    cosine = np.abs((rotations * rig.joint_rotations[frames]).sum(axis=-1))
    np.testing.assert_allclose(cosine, 1, atol=1e-12)
    np.testing.assert_allclose(moves, rig.root_translations[frames], atol=1e-12)


def test_scaled_joints_turn_all_the_same(chain, built):
    plain = given(chain)
    grown = plain.joint_mats.copy()
    grown[..., :3] *= 1.3
    grown[..., 3] = plain.positions() - np.einsum("fjab,jb->fja", grown[..., :3], plain.rest)
    rotations, _ = given_poses(built.rig, replace(plain, joint_mats=grown))
    np.testing.assert_allclose(np.abs((rotations * built.rig.joint_rotations).sum(axis=-1)), 1, atol=1e-9)


def test_unusable_frames_are_skipped_in_step(chain, built):
    frames = chain["frames"].astype(np.float32)
    frames[4] = np.nan
    capture = replace(make_capture(frames), skeleton=given(chain))
    rig = build_rig(capture, RigOptions(max_bones=3, canonical_frame=CANONICAL, skeleton="auto")).rig
    kept = np.delete(np.arange(24), 4)
    np.testing.assert_array_equal(rig.frames, kept)
    np.testing.assert_allclose(rig.root_translations, built.rig.root_translations[kept], atol=1e-12)


def test_a_single_bone_sits_on_the_given_joint_that_moves_it(chain):
    rest = chain["rest"][:200]
    motion = chain["transforms"][:, 1]
    frames = np.einsum("fab,nb->fna", motion[..., :3], rest) + motion[:, None, :, 3]
    capture = replace(make_capture(frames), skeleton=given(chain))
    result = build_rig(capture, RigOptions(max_bones=1, skeleton="auto"))
    assert result.rig.joint_names[result.rig.bone_joints[0]] == "knee"
    assert result.report.skeleton_rmse_percent < 1e-3


def test_which_skeleton_is_the_users_choice(chain, coarse):
    capture = make_capture(chain["frames"])
    with pytest.raises(CaptureError, match="synthetic brings no skeleton; let one be extracted"):
        build_rig(capture, RigOptions(skeleton="given"))
    with pytest.raises(CaptureError, match="auto, given or extracted, not 'mine'"):
        RigOptions(skeleton="mine").check()
    extracted = build_rig(replace(capture, skeleton=given(chain)), RigOptions(2, skeleton="extracted")).rig
    assert extracted.joint_names[0] == "root" and extracted.joint_bind is None
    with pytest.raises(RigError, match="a skeleton of its own"):
        given_poses(extracted, given(chain))


def test_a_skeleton_without_one_of_the_joints_is_refused(chain, built):
    other = replace(given(chain), names=("hip", "knee", "claw"))
    with pytest.raises(RigError, match="no joint called 'toe'"):
        given_poses(built.rig, other)


def test_joints_that_slide_are_followed_only_when_asked_for(chain, coarse):
    skeleton = given(chain)
    sliding = skeleton.joint_mats.copy()
    sliding[:, 2, 1, 3] += np.linspace(0, 1, 24)
    capture = replace(make_capture(chain["frames"]), skeleton=replace(skeleton, joint_mats=sliding))
    found = build_rig(capture, RigOptions(2, skeleton="auto"))
    assert found.rig.joint_bind is None and "was not used" in found.report.notes[-1]
    asked = build_rig(capture, RigOptions(2, skeleton="given"))
    assert asked.rig.joint_names == ("hip", "knee", "toe")
    assert "followed in part" in asked.report.notes[-1] and asked.report.notes[-1].endswith(" toe.")


# Animation rigs


def turned(angles, axis=(0, 0, 1.0)):
    return quaternion_to_matrix(axis_angle_to_quaternion(np.broadcast_to(axis, (*angles.shape, 3)), angles))


def about(rotations, places, before):
    """Transforms that take `before` to `places` (F, 3), turned."""
    return np.concatenate([rotations, (places - rotations @ before)[..., None]], axis=-1)


@pytest.fixture
def leg():
    """A hip moving under a still root, a leg, a foot hung on the root, and a target moving by itself."""
    names = ("origin", "hip", "leg", "foot", "target")
    places = np.array([[0, 0, 0], [0, 4, 0], [0, 2, 0], [0, 0.2, 0], [3, 0, 0.0]])
    time = np.linspace(0, 6, 40)
    still = np.broadcast_to(np.eye(3, 4), (40, 3, 4))
    hip = about(turned(0.3 * np.sin(time)), places[1] + np.outer(time, [1, 0, 0]), places[1])
    knee = hip[..., :3] @ places[2] + hip[..., 3]
    leg = about(turned(0.6 * np.cos(time)), knee, places[2])
    foot = about(turned(0 * time), leg[..., :3] @ places[3] + leg[..., 3], places[3])
    target = about(turned(0 * time), places[4] + np.outer(np.sin(time), [0, 2, 0]), places[4])
    motions = np.stack([still, hip, leg, foot, target], axis=1)
    return names, KinematicTree(places, np.array([-1, 0, 1, 0, 0], np.int32)), motions


def test_helpers_are_left_out_and_loose_joints_hung_where_they_turn(leg):
    names, tree, motions = leg
    affinity = np.array([[0, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 1, 0.0]])
    mended, kept, notes, sliding = mend_tree(names, tree, motions, affinity, 2 * tree.positions)
    assert [names[j] for j in kept] == ["hip", "leg", "foot"]
    assert mended.parents.tolist() == [-1, 0, 1]
    assert any("left out: origin, target" in note for note in notes)
    assert any("hung on others: foot" in note for note in notes) and len(notes) == 2
    assert not sliding


def test_a_root_that_carries_points_stays_and_what_slides_is_named(leg):
    names, tree, motions = leg
    affinity = np.eye(5)[[0, 1, 2, 3]]
    mended, kept, notes, sliding = mend_tree(names, tree, motions, affinity, 2 * tree.positions)
    assert [names[j] for j in kept] == ["origin", "hip", "leg", "foot"]
    assert mended.parents.tolist() == [-1, 0, 1, 2]
    assert sliding == "hip"


def test_several_roots_become_one_tree(leg):
    names, tree, motions = leg
    alone = KinematicTree(tree.positions, np.full(5, -1, np.int32))
    affinity = np.array([[0, 1, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 1, 0.0]])
    mended, kept, _, _ = mend_tree(names, alone, motions, affinity, 2 * tree.positions)
    assert [names[j] for j in kept] == ["hip", "leg", "foot"]
    assert mended.parents.tolist() == [-1, 0, 1]


# Real captures


@pytest.mark.parametrize(
    "name, joints, most",
    [("fox", 22, 0.5), ("cesium-man", 19, 0.4)],
)
def test_true_skeletons_of_real_captures(name, joints, most):
    path = DATA / name / f"{name}.npz"
    if not path.exists():
        pytest.skip(f"{path.name} is not here")
    capture = read_capture(path)
    few = capture.take_frames(np.arange(0, capture.frame_count, 4))
    result = build_rig(few, RigOptions(max_bones=20, skeleton="auto"))
    rig = result.rig
    assert rig.joint_count == joints and result.report.skeleton_rmse_percent < most
    rotations, moves = given_poses(rig, capture.skeleton)
    rest = outer_bone_transforms(rig, rotations, moves)
    # Frames the rig has not seen are met as well as those it has.
    miss = [
        np.sqrt(((posed_points(rig, rest[f]) - capture.positions[f]) ** 2).sum(axis=-1).mean())
        for f in range(2, capture.frame_count, 8)
    ]
    assert 100 * np.mean(miss) / np.linalg.norm(np.ptp(rig.rest, axis=0)) < most
