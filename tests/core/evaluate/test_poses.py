"""Poses of the skeleton in held-out frames."""

from dataclasses import replace

import numpy as np

from gaussianimate.core.evaluate.measure import distances
from gaussianimate.core.evaluate.poses import captured_poses, fitted_poses
from gaussianimate.core.rigging.posing import outer_bone_transforms


def test_given_poses_are_the_rigs_own(capture, learned):
    rig = learned.rig
    rotations, moves = captured_poses(capture, rig, rig.frames)
    np.testing.assert_allclose(np.abs((rotations * rig.joint_rotations).sum(-1)), 1, atol=1e-9)
    np.testing.assert_allclose(moves, rig.root_translations, atol=1e-9)


def test_fitted_poses_replay_as_well_as_the_given_ones(learned):
    rig, rows = learned.rig, np.arange(0, 100, 3)

    def error(rotations, moves):
        bones = outer_bone_transforms(rig, rotations, moves)
        return distances(rig.rest, rig.indices, rig.weights, bones, learned.positions[rows])[0]

    fitted = error(*fitted_poses(rig, learned.positions[rows]))
    assert fitted <= error(rig.joint_rotations[rows], rig.root_translations[rows]) + 1e-6


def test_joints_that_were_found_are_fitted_to_frames_not_learned_from(capture, learned):
    rig = replace(learned.rig, joint_bind=None)
    known = rig.frames[:5]
    new = np.setdiff1d(np.arange(capture.frame_count), rig.frames)[:5]
    rotations, moves = captured_poses(capture, rig, np.concatenate([known, new]))
    assert (rotations[:5] == rig.joint_rotations[:5]).all() and (moves[:5] == rig.root_translations[:5]).all()
    expected = fitted_poses(rig, capture.positions[new])
    assert (rotations[5:] == expected[0]).all() and (moves[5:] == expected[1]).all()
