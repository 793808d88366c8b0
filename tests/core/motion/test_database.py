"""The motion database: values, recomposition, gaps, growth, storage, parts."""

from dataclasses import replace

import numpy as np
import pytest

from gaussianimate.core.errors import RigError
from gaussianimate.core.motion.arrays import database_from_arrays, database_to_arrays
from gaussianimate.core.motion.database import (
    MotionDatabase,
    Residuals,
    bone_transforms,
    build_database,
    extend_database,
    full_body,
    repaired_rotations,
    residuals_of,
)
from gaussianimate.core.motion.parts import skeleton_parts
from gaussianimate.core.rigging.posing import outer_bone_transforms


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(arrays(a), arrays(b), strict=True))


def arrays(database):
    return database_to_arrays(database).values()


def test_the_values_on_their_own_keys_are_the_capture(puppet):
    motion = puppet.clip([2, 3, 6])
    database = puppet.database([motion])
    transforms = bone_transforms(database, database.residuals, *motion)
    assert puppet.error(transforms, puppet.truth(*motion)) < 1e-6
    exact = residuals_of(database, *motion, puppet.truth(*motion))
    assert np.abs(bone_transforms(database, exact, *motion) - puppet.truth(*motion)).max() < 1e-14


def test_no_residual_is_the_rigid_binding(puppet):
    motion = puppet.clip([2, 3, 6])
    rig = puppet.rig(*motion)
    database = build_database(rig)
    rigid = bone_transforms(database, Residuals.rigid(80, 11), *motion)
    assert np.allclose(rigid, outer_bone_transforms(rig, *motion), atol=1e-14)


def test_pivots_masses_and_spreads_measure_points(puppet):
    motion = puppet.clip([2, 3])
    database = puppet.database([motion])
    one, other = (residuals_of(database, *motion, puppet.truth(*motion))[[row]] for row in (5, 30))
    poses = np.tile([1.0, 0, 0, 0], (1, 7, 1)), np.zeros((1, 3))
    points = puppet.error(bone_transforms(database, one, *poses), bone_transforms(database, other, *poses))
    from gaussianimate.core.rotations import quaternion_to_matrix

    turn = quaternion_to_matrix(one.rotations) - quaternion_to_matrix(other.rotations)
    squared = np.einsum("qbij,bjk,qbik->", turn, database.spreads, turn)
    squared += np.einsum("b,qba->", database.masses, (one.offsets - other.offsets) ** 2)
    assert np.sqrt(squared / database.masses.sum()) / puppet.DIAGONAL == pytest.approx(points, rel=1e-6)


def test_missing_frames_are_filled_and_long_gaps_split_the_clip(puppet):
    rotations, roots = puppet.clip([2, 3])
    frames = np.r_[0:20, 21:40, 60:80]
    database = build_database(puppet.rig(rotations[frames], roots[frames], frames=frames))
    assert database.frame_count == 60 and database.clip_count == 2
    assert np.flatnonzero(~database.captured).tolist() == [20]
    whole = build_database(puppet.rig(rotations, roots))
    assert np.abs(database.rotations[20] - whole.rotations[20]).max() < 2e-3
    assert np.abs(database.residual_offsets[20] - whole.residual_offsets[20]).max() < 1e-3
    assert np.array_equal(database.residual_offsets[40:], whole.residual_offsets[60:])


def test_adding_a_capture_is_building_with_both(puppet):
    motions = [puppet.clip(limb) for limb in puppet.LIMBS]
    grown = puppet.database(motions[:2])
    grown = extend_database(grown, *motions[2], puppet.truth(*motions[2]))
    assert same(grown, puppet.database(motions))
    assert grown.clip_count == 3


def test_a_capture_of_something_else_is_refused(puppet, one_limb_each):
    rotations, roots = puppet.clip([2])
    with pytest.raises(RigError, match="7 joints and 10 bones"):
        extend_database(one_limb_each, rotations, roots, puppet.truth(rotations, roots)[:, :10])


def test_clips_come_in_order_whatever_their_numbers(puppet):
    motion = puppet.clip([2, 3])
    clips = np.repeat([7, 3], 40)
    database = build_database(puppet.rig(*motion), clips)
    assert database.clip_count == 2
    assert np.allclose(database.rotations[:40], motion[0][40:], atol=1e-6)
    order = np.random.default_rng(0).permutation(80)
    shuffled = puppet.rig(motion[0][order], motion[1][order], frames=order)
    assert same(build_database(shuffled, clips[order]), database)


def test_it_comes_back_from_arrays(one_limb_each, tmp_path):
    np.savez(tmp_path / "database.npz", **database_to_arrays(one_limb_each))
    with np.load(tmp_path / "database.npz", allow_pickle=False) as stored:
        again = database_from_arrays(dict(stored))
    assert isinstance(again, MotionDatabase) and same(one_limb_each, again)
    assert again.fps == one_limb_each.fps and len(again.parts) == len(one_limb_each.parts)


def test_broken_arrays_are_named(one_limb_each):
    stored = database_to_arrays(one_limb_each)
    with pytest.raises(RigError, match="lacks pivots"):
        database_from_arrays({name: rows for name, rows in stored.items() if name != "pivots"})
    with pytest.raises(RigError, match="do not fit together"):
        database_from_arrays({**stored, "residual_offsets": stored["residual_offsets"][:-1]})


def test_every_bone_listens_to_parts_and_its_own_first(puppet, one_limb_each):
    weights, leaders = one_limb_each.bone_parts, one_limb_each.part_leaders
    assert np.allclose(weights.sum(axis=0), 1, atol=1e-6)
    assert weights[weights > 0].min() >= 0.05
    for bone, joint in enumerate(puppet.CARRIERS):
        own = joint if joint in leaders else puppet.PARENTS[joint]  # a leaf belongs to its parent's part
        assert weights[leaders == own, bone] == weights[:, bone].max()
    for part, leader in zip(one_limb_each.parts, leaders, strict=True):
        family = np.flatnonzero(puppet.PARENTS == leader).tolist() + [leader, puppet.PARENTS[leader]]
        assert sorted(part) == sorted(joint for joint in family if joint > 0)


def test_hard_parts_and_the_whole_body(puppet):
    affinity = np.eye(7)[puppet.CARRIERS]
    _, leaders, weights = skeleton_parts(puppet.PARENTS, affinity, softness=0)
    assert set(np.unique(weights)) == {0, 1} and set(leaders) == {0, 1, 2, 4}
    database = full_body(puppet.database([puppet.clip([2])]))
    assert [part.tolist() for part in database.parts] == [[1, 2, 3, 4, 5, 6]]


def test_broken_query_rotations_take_the_pose_before(puppet):
    rotations, _ = puppet.clip([2, 3])
    broken = rotations.copy()
    broken[5, 2], broken[6, 2, 1], broken[0, 3] = np.nan, np.inf, 0
    fixed = repaired_rotations(broken)
    assert np.array_equal(fixed[5:7, 2], np.tile(fixed[4, 2], (2, 1)))
    assert fixed[0, 3].tolist() == [1, 0, 0, 0]
    untouched = np.ones((80, 7), bool)
    untouched[[5, 6, 0], [2, 2, 3]] = False
    assert np.allclose(fixed[untouched], rotations[untouched], atol=1e-15)


def test_up_is_kept_as_a_unit_vector(puppet):
    assert build_database(puppet.rig(*puppet.clip([2])), up=np.array([0, 0, 2.0])).up.tolist() == [0, 0, 1]
    assert replace(puppet.database([puppet.clip([2])]), fps=30.0).fps == 30
