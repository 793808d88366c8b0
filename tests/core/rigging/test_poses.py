"""Forward kinematics and the pose fit (K8-K10)."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from gaussianimate.core.rigging.skeleton.binding import rebind
from gaussianimate.core.rigging.skeleton.kinematics import (
    joint_transforms,
    local_quaternions,
    skinning_transforms,
)
from gaussianimate.core.rigging.skeleton.lbs_statistics import lbs_statistics
from gaussianimate.core.rigging.skeleton.placement import place_joints
from gaussianimate.core.rigging.skeleton.poses import fit_poses, rotation_exp, squared_error
from gaussianimate.core.rigging.skeleton.tree import KinematicTree

synthetic = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("synthetic.py"))))


def fitted(frames, chain):
    stats = lbs_statistics(chain["rest"], frames, chain["indices"], chain["weights"], 3)
    tree = KinematicTree((chain["joints"] - stats.center) / stats.scale, np.array([-1, 0, 1], np.int32))
    return stats, tree, fit_poses(stats, tree, np.arange(3))


@pytest.fixture(scope="module")
def chain():
    return synthetic.chain(3)


def test_rest_is_exactly_the_identity(chain):
    rest = np.tile([1.0, 0, 0, 0], (1, 3, 1))
    transforms = joint_transforms(np.array([-1, 0, 1]), chain["joints"] + 0.1, rest, np.zeros((1, 3)))
    assert (transforms == np.eye(3, 4)).all()


def test_forward_kinematics_turns_a_joint_about_its_own_place():
    half = np.array([[[1.0, 0, 0, 0], [0.5**0.5, 0, 0, 0.5**0.5]]])  # the second joint a quarter turn about z
    joints = np.array([[0.0, 0, 0], [1, 0, 0]])
    transforms = joint_transforms(np.array([-1, 0]), joints, half, np.array([[0.0, 0, 5]]))
    np.testing.assert_allclose(transforms[0, 1] @ [2, 0, 0, 1], [1, 1, 5], atol=1e-12)
    np.testing.assert_allclose(transforms[0, 1] @ [1, 0, 0, 1], [1, 0, 5], atol=1e-12)


def test_the_fit_finds_the_poses_of_an_exact_chain(chain):
    stats, tree, poses = fitted(chain["frames"], chain)
    transforms = skinning_transforms(tree, poses)
    error = squared_error(stats, transforms).sum() / (stats.point_count * len(transforms))
    assert np.sqrt(error) < 1e-4  # of the diagonal
    tracks = np.einsum("fjab,jb->fja", transforms[..., :3], tree.positions) + transforms[..., 3]
    truth = np.einsum("fjab,jb->fja", chain["transforms"][..., :3], chain["joints"])
    truth = (truth + chain["transforms"][..., 3] - stats.frame_centers[:, None]) / stats.scale
    assert np.sqrt(((tracks - truth) ** 2).sum(-1).mean()) < 1e-3
    quaternions = local_quaternions(tree, poses.rotations)
    angle = 2 * np.arccos(np.clip(np.abs((quaternions * chain["rotations"]).sum(-1)), 0, 1))
    assert angle.max() < 0.02
    assert (np.einsum("fjq,fjq->fj", quaternions[1:], quaternions[:-1]) > 0).all()
    np.testing.assert_allclose(transforms[0], np.broadcast_to(np.eye(3, 4), (3, 3, 4)), atol=1e-6)


def test_rotations_are_rotations(chain):
    rotations = fitted(chain["frames"], chain)[2].rotations
    identity = np.broadcast_to(np.eye(3), rotations.shape)
    np.testing.assert_allclose(rotations @ np.swapaxes(rotations, -1, -2), identity, atol=1e-5)
    np.testing.assert_allclose(np.linalg.det(rotations), 1, atol=1e-5)


def test_a_rigid_motion_of_the_frames_turns_the_root_only(chain):
    turn, shift = rotation_exp(np.array([0.3, -1.1, 0.7])), np.array([5.0, -2, 1])
    moved = chain["frames"] @ turn.T + shift
    tree, plain = fitted(chain["frames"], chain)[1:]
    turned = fitted(moved, chain)[2]
    one, other = (local_quaternions(tree, poses.rotations) for poses in (plain, turned))
    np.testing.assert_allclose(np.abs((one[:, 1:] * other[:, 1:]).sum(-1)), 1, atol=1e-8)
    np.testing.assert_allclose(turned.rotations[:, 0], turn @ plain.rotations[:, 0], atol=1e-4)


def test_a_joint_that_drives_nothing_follows_its_parent(chain):
    stats = lbs_statistics(chain["rest"], chain["frames"], chain["indices"], chain["weights"], 3)
    places = (np.concatenate([chain["joints"], [[4.0, 0, 0]]]) - stats.center) / stats.scale
    tree = KinematicTree(places, np.array([-1, 0, 1, 2], np.int32))
    poses = fit_poses(stats, tree, np.arange(3))
    relative = np.swapaxes(poses.rotations[:, 2], -1, -2) @ poses.rotations[:, 3]
    np.testing.assert_allclose(relative, np.tile(np.eye(3), (len(relative), 1, 1)), atol=1e-5)


def test_statistics_give_the_error_of_the_points(chain):
    stats = lbs_statistics(chain["rest"], chain["frames"], chain["indices"], chain["weights"], 3)
    still = np.broadcast_to(np.eye(3, 4), (len(chain["frames"]), 3, 3, 4))
    errors = squared_error(stats, still)
    rest = (chain["rest"] - stats.center) / stats.scale
    frames = (chain["frames"] - stats.frame_centers[:, None]) / stats.scale
    np.testing.assert_allclose(errors, ((frames - rest) ** 2).sum(axis=(1, 2)), rtol=1e-9, atol=1e-9)


def test_joints_move_to_the_centres_of_rotation(chain):
    stats, tree, poses = fitted(chain["frames"], chain)
    askew = tree.positions + np.array([0.01, 0.004, 0])
    for _ in range(10):
        shifted = KinematicTree(askew, tree.parents)
        poses = fit_poses(stats, shifted, np.arange(3), poses.rotations)
        askew = place_joints(stats, shifted, np.arange(3), poses, askew)
    axes = chain["rotations"][5, 1:, 1:]  # along its axis a hinge has no place of its own
    miss = np.cross(askew[1:] - tree.positions[1:], axes / np.linalg.norm(axes, axis=1, keepdims=True))
    assert np.linalg.norm(miss, axis=1).max() < 2e-3  # from 1e-2


def test_bones_find_their_joints(chain):
    stats, tree, poses = fitted(chain["frames"], chain)
    wrong = np.array([0, 0, 1], dtype=np.int32)
    allowed = np.ones((3, 3), dtype=bool)
    assert rebind(stats, skinning_transforms(tree, poses), wrong, allowed).tolist() == [0, 1, 2]
    allowed[2, 2] = False
    assert rebind(stats, skinning_transforms(tree, poses), wrong, allowed)[2] != 2
