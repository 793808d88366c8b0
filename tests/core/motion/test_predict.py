"""The one entry to all ways of answering poses."""

import numpy as np
import pytest

from gaussianimate.core.motion.database import Residuals, bone_transforms, full_body
from gaussianimate.core.motion.match import MatchOptions, match_motion
from gaussianimate.core.motion.predict import predict


@pytest.mark.parametrize("mode", ["match", "full", "auto"])
def test_a_captured_motion_comes_back_with_its_root(puppet, one_limb_each, mode):
    motion = puppet.clip(puppet.LIMBS[1])
    assert puppet.error(predict(one_limb_each, *motion, mode), puppet.truth(*motion)) < 1e-3


def test_modes_are_what_they_are_named(puppet, one_limb_each):
    motion = puppet.clip([2, 4], phase=0.3)
    for mode, database in (("match", one_limb_each), ("full", full_body(one_limb_each))):
        expected = bone_transforms(database, match_motion(database, motion[0]), *motion)
        assert np.array_equal(predict(one_limb_each, *motion, mode), expected)
    with pytest.raises(ValueError, match="nearest"):
        predict(one_limb_each, *motion, "nearest")


def test_the_kernel_is_fitted_when_not_given(puppet):
    motions = [puppet.clip(limb, frames=30, phase=phase) for phase in (0, 1, 2) for limb in ([2, 3], [4, 5])]
    database = puppet.database(motions)
    motion = puppet.clip([2, 3], frames=30, phase=0.5)
    truth = puppet.truth(*motion)
    kernel = puppet.error(predict(database, *motion, "kernel"), truth)
    rigid = puppet.error(bone_transforms(database, Residuals.rigid(30, 11), *motion), truth)
    assert kernel < rigid / 5


@pytest.mark.parametrize("mode", ["match", "auto"])
def test_broken_poses_and_places_hold_the_frame_before(puppet, one_limb_each, mode):
    rotations, roots = puppet.clip([2, 3])
    held, broken = (rotations.copy(), roots.copy()), (rotations.copy(), roots.copy())
    held[0][40, 2], held[1][50], held[1][0] = rotations[39, 2], roots[49], 0
    broken[0][40, 2], broken[1][50, 1], broken[1][0] = np.nan, np.inf, np.nan
    assert np.abs(predict(one_limb_each, *broken, mode) - predict(one_limb_each, *held, mode)).max() < 1e-12


def test_no_frames_no_answer_and_options_pass(puppet, one_limb_each):
    rotations, roots = puppet.clip([2, 3])
    assert predict(one_limb_each, rotations[:0], roots[:0]).shape == (0, 11, 3, 4)
    centre = predict(one_limb_each, rotations, roots, "match", options=MatchOptions(window="centre"))
    assert puppet.error(centre, predict(one_limb_each, rotations, roots, "match")) > 0
