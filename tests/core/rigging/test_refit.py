"""Corrected skeletons: what was not touched keeps its motion, what was is solved again."""

import runpy
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from gaussianimate.core.errors import Cancelled, RigError
from gaussianimate.core.rigging.build import RigOptions, build_rig
from gaussianimate.core.rigging.edited_skeleton import EditedSkeleton, SkeletonEdits
from gaussianimate.core.rigging.refit import refit_skeleton
from gaussianimate.core.rigging.rig import Rig
from gaussianimate.core.rigging.skeleton.kinematics import joint_transforms
from gaussianimate.core.rigging.skeleton.lbs_statistics import lbs_statistics, replay_statistics

synthetic = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("synthetic.py"))))
EXAMPLES = Path(__file__).parents[3] / "examples"
PARTS = 4
EXACT = 2e-3  # per cent of the diagonal: what an exact fit leaves


def chain_rig(chain, **changes):
    """The true rig of a chain: a bone and a joint for each part, and an end."""
    parts, frames = len(chain["joints"]), len(chain["frames"])
    turns = np.concatenate([chain["rotations"], np.tile([1.0, 0, 0, 0], (frames, 1, 1))], axis=1)
    rig = Rig(
        rest=chain["rest"].astype(np.float32),
        indices=chain["indices"],
        weights=chain["weights"].astype(np.float32),
        bone_transforms=chain["transforms"],
        joint_names=tuple(f"j{j}" for j in range(parts)) + ("end",),
        joint_parents=np.arange(-1, parts).astype(np.int32),
        joint_positions=np.concatenate([chain["joints"], [[4.0, 0, 0]]]),
        bone_joints=np.arange(parts, dtype=np.int32),
        joint_rotations=turns,
        root_translations=chain["moves"],
        frames=np.arange(frames, dtype=np.int32),
        fps=24.0,
        canonical_frame=0,
        bone_affinity=np.eye(parts, parts + 1, dtype=np.float32),
    )
    rig = replace(rig, **changes)
    rig.check()
    return rig


def unchanged(rig):
    """Arrays of an edit that changes nothing: names, parents, positions, origins."""
    count = rig.joint_count
    return [list(rig.joint_names), rig.joint_parents.copy(), rig.joint_positions.copy(), np.arange(count)]


def without(rig, joint):
    """The edit that deletes a joint; its children become its parent's."""
    names, parents, places, origins = unchanged(rig)
    keep = origins != joint
    number = np.cumsum(keep) - 1
    parents = np.where(parents == joint, parents[joint], parents)[keep]
    parents = np.where(parents >= 0, number[parents], -1)
    return [[name for name, k in zip(names, keep, strict=True) if k], parents, places[keep], origins[keep]]


def inserted(rig, above, below, place, name="new"):
    """The edit that puts a joint between two."""
    names, parents, places, origins = unchanged(rig)
    parents = np.append(parents, above)
    parents[below] = len(names)
    return [[*names, name], parents, np.concatenate([places, [place]]), np.append(origins, -1)]


def refitted(rig, edit, positions=None):
    return refit_skeleton(rig, EditedSkeleton.make(rig, *edit), positions)


def world(rig):
    return joint_transforms(
        rig.joint_parents, rig.joint_positions, rig.joint_rotations, rig.root_translations
    )


@pytest.fixture(scope="module")
def chain():
    return synthetic.chain(PARTS, count=30)


@pytest.fixture(scope="module")
def rig(chain):
    return chain_rig(chain)


def test_no_change_keeps_everything(chain, rig):
    result = refitted(rig, unchanged(rig), chain["frames"])
    np.testing.assert_array_equal(result.rig.joint_rotations, rig.joint_rotations)
    np.testing.assert_allclose(result.rig.root_translations, rig.root_translations, atol=1e-12)
    np.testing.assert_array_equal(result.rig.bone_joints, rig.bone_joints)
    np.testing.assert_array_equal(result.rig.bone_affinity, rig.bone_affinity)
    assert result.report.skeleton_rmse_percent == pytest.approx(result.skeleton_rmse_percent_before, abs=1e-5)
    assert not result.edits.beside.any() and not result.report.notes


def test_new_names_change_nothing_else(chain, rig):
    edit = unchanged(rig)
    edit[0][2] = "elbow"
    result = refitted(rig, edit, chain["frames"])
    assert result.rig.joint_names == ("j0", "j1", "elbow", "j3", "end")
    np.testing.assert_array_equal(result.rig.joint_rotations, rig.joint_rotations)
    assert np.flatnonzero(result.edits.renamed).tolist() == [2] and not result.edits.beside.any()


def test_a_deleted_joint_costs_what_it_did_and_leaves_the_rest_alone(chain, rig):
    result = refitted(rig, without(rig, 2), chain["frames"])
    assert result.rig.joint_names == ("j0", "j1", "j3", "end")
    assert result.skeleton_rmse_percent_before < 0.5 < result.report.skeleton_rmse_percent
    assert set(result.rig.bone_joints.tolist()) == {0, 1, 2}
    # The best of what three joints can do: no worse than any single angle for the merged part.
    frozen = replace(
        rig,
        bone_joints=np.array([0, 1, 1, 3], np.int32),
        joint_rotations=rig.joint_rotations.copy(),
    )
    plain = refit_skeleton(frozen, EditedSkeleton.make(frozen, *unchanged(frozen)), chain["frames"])
    assert result.report.skeleton_rmse_percent < plain.report.skeleton_rmse_percent
    assert np.flatnonzero(result.edits.removed).tolist() == [2]


def test_joints_far_from_the_change_move_as_before(chain, rig):
    # j3 and the end hang on j2, which is beside the new joint; the root is beyond j1.
    longer = chain_rig(chain)
    result = refitted(longer, inserted(longer, 3, 4, [3.5, 0, 0]), chain["frames"])
    assert result.edits.beside.tolist() == [False, False, False, True, True, True]
    np.testing.assert_allclose(world(result.rig)[:, :3], world(longer)[:, :3], atol=1e-9)
    assert result.report.skeleton_rmse_percent < EXACT


def test_a_joint_where_the_truth_has_one_restores_the_motion(chain, rig):
    fewer = refitted(rig, without(rig, 2), chain["frames"]).rig
    result = refitted(fewer, inserted(fewer, 1, 2, chain["joints"][2]), chain["frames"])
    assert result.report.skeleton_rmse_percent < EXACT < 0.01 * result.skeleton_rmse_percent_before
    assert result.rig.joint_names[2] == "new"
    np.testing.assert_array_equal(result.rig.bone_joints, [0, 1, 2, 3])
    np.testing.assert_allclose(result.rig.bone_affinity.sum(axis=1), 1, atol=1e-6)
    assert (result.rig.bone_affinity.argmax(axis=1) == [0, 1, 2, 3]).all()


def test_a_joint_moved_to_its_true_place_lowers_the_error(chain, rig):
    places = rig.joint_positions.copy()
    places[2, :2] += 0.3, 0.2
    edit = unchanged(rig)
    edit[2] = places
    askew = refitted(rig, edit, chain["frames"])
    assert askew.report.skeleton_rmse_percent > 100 * EXACT
    edit = unchanged(askew.rig)
    edit[2] = rig.joint_positions
    back = refitted(askew.rig, edit, chain["frames"])
    assert back.report.skeleton_rmse_percent < EXACT
    np.testing.assert_allclose(world(back.rig), world(rig), atol=0.02)


def test_a_joint_hung_on_another_is_solved_there(chain, rig):
    edit = unchanged(rig)
    edit[1][3] = 1  # j3 hangs on j1 now, j2 is left without a child
    result = refitted(rig, edit, chain["frames"])
    assert result.edits.hung_anew.tolist() == [False, False, False, True, False]
    assert np.isfinite(result.report.skeleton_rmse_percent)
    apart = world(result.rig)[:, 3, :, :3] - world(rig)[:, 3, :, :3]
    assert np.sqrt((apart**2).mean()) < 0.1  # it still turns as its points do
    edit = unchanged(result.rig)
    edit[1][edit[0].index("j3")] = edit[0].index("j2")
    back = refitted(result.rig, edit, chain["frames"])
    assert back.report.skeleton_rmse_percent < EXACT


def test_a_joint_that_carries_nothing_is_named(chain, rig):
    names, parents, places, origins = inserted(rig, 3, 4, [3.999, 0, 0], "stub")
    result = refitted(rig, [names, parents, places, origins], chain["frames"])
    assert result.report.notes == ("'stub' carries no splats; it only hands on the motion of its parent.",)
    relative = result.rig.joint_rotations[:, result.rig.joint_names.index("stub")]
    np.testing.assert_allclose(np.abs(relative[:, 0]), 1, atol=1e-6)


def test_without_the_capture_the_replay_stands_in(chain, rig):
    edit = without(rig, 2)
    one, other = refitted(rig, edit), refitted(rig, edit, chain["frames"])
    assert one.report.skeleton_rmse_percent == pytest.approx(other.report.skeleton_rmse_percent, rel=1e-3)
    assert one.report.rmse_percent < 1e-4
    np.testing.assert_array_equal(one.rig.bone_joints, other.rig.bone_joints)


def test_replay_statistics_are_those_of_the_replay(chain):
    arguments = chain["indices"], chain["weights"]
    made = lbs_statistics(chain["rest"], chain["frames"], *arguments, PARTS)
    found = replay_statistics(chain["rest"], chain["transforms"], *arguments)
    for name in ("gram", "cross", "energy", "center", "frame_centers", "scale"):
        np.testing.assert_allclose(getattr(found, name), getattr(made, name), atol=1e-8, err_msg=name)


def test_known_joints_of_a_given_skeleton_keep_their_motion(chain, rig):
    bind = np.tile(np.eye(3, 4), (rig.joint_count, 1, 1))
    bind[:, 0, 3] = np.arange(rig.joint_count)
    known = chain_rig(chain, joint_bind=bind)
    fewer = refitted(known, without(known, 2), chain["frames"])
    kept = [0, 1, 3, 4]
    np.testing.assert_array_equal(fewer.rig.joint_bind, bind[kept])
    np.testing.assert_allclose(world(fewer.rig)[..., :3], world(known)[:, kept, :, :3], atol=1e-9)
    more = refitted(known, inserted(known, 0, 1, [0.5, 0, 0]), chain["frames"])
    assert more.rig.joint_bind is None
    assert "no longer all those the capture brought" in more.report.notes[-1]
    np.testing.assert_allclose(world(more.rig)[:, [0, 2, 3, 4], :, :3], world(known)[:, :4, :, :3], atol=1e-9)
    named = unchanged(known)
    named[0][0] = "hip"
    assert refitted(known, named, chain["frames"]).rig.joint_bind is None


def test_a_new_root_above_the_old_one(chain, rig):
    names, parents, places, origins = unchanged(rig)
    parents[0] = len(names)
    edit = [[*names, "master"], np.append(parents, -1), [*places, [0, 0, -1]], np.append(origins, -1)]
    result = refitted(rig, edit, chain["frames"])
    assert result.rig.joint_names[0] == "master" and result.rig.joint_parents.tolist() == [-1, 0, 1, 2, 3, 4]
    assert result.report.skeleton_rmse_percent < EXACT


def test_joints_come_in_any_order_and_hardly_moved_ones_have_not_moved(rig):
    names, parents, places, origins = unchanged(rig)
    turned = np.arange(rig.joint_count)[::-1]
    rank = np.argsort(turned)
    edited = EditedSkeleton.make(
        rig,
        [names[j] for j in turned],
        np.where(parents[turned] >= 0, rank[parents[turned]], -1),
        places[turned] + 1e-7,
        origins[turned],
    )
    assert edited.names == rig.joint_names
    np.testing.assert_array_equal(edited.positions, rig.joint_positions)
    assert not SkeletonEdits.of(rig, edited).changed.any()


def test_joints_keep_the_order_of_the_rig(rig):
    forked = replace(rig, joint_parents=np.array([-1, 0, 1, 2, 0], np.int32))
    names, parents, places, origins = inserted(forked, 0, 1, [0.5, 0, 0])
    assert EditedSkeleton.make(forked, *unchanged(forked)).names == forked.joint_names
    more = EditedSkeleton.make(forked, names, parents, places, origins)
    assert more.names == ("j0", "end", "new", "j1", "j2", "j3")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda e: e[1].__setitem__(2, -1), "falls into 2 pieces, as 'j0', 'j2' have no parent"),
        (lambda e: e[1].__setitem__(0, 3), "form a circle"),
        (lambda e: e[0].__setitem__(3, "j1"), "Two joints are called 'j1'"),
        (lambda e: e[2].__setitem__((1, 0), np.nan), "Joint 'j1' is nowhere"),
        (lambda e: e[3].__setitem__(1, 0), "two joints claim to be the same"),
        (lambda e: e[3].__setitem__(1, 99), "names joints that do not exist"),
    ],
)
def test_what_is_no_skeleton_is_said(rig, change, message):
    edit = unchanged(rig)
    change(edit)
    with pytest.raises(RigError, match=message):
        EditedSkeleton.make(rig, *edit)
    with pytest.raises(RigError, match="no joints left"):
        EditedSkeleton.make(rig, [], [], np.zeros((0, 3)), [])


def test_it_can_be_cancelled(chain, rig):
    def stop(stage, fraction):
        raise Cancelled("cancelled")

    with pytest.raises(Cancelled):
        refit_skeleton(rig, EditedSkeleton.make(rig, *without(rig, 1)), chain["frames"], stop)


@pytest.fixture(scope="module")
def body():
    """A clothed human's capture, every fifth frame, and its rig."""
    sys.path.insert(0, str(EXAMPLES))
    try:
        from sample import load_sample
    finally:
        sys.path.remove(str(EXAMPLES))
    capture = load_sample()
    capture = replace(capture, positions=capture.positions[::5], frame_valid=capture.frame_valid[::5])
    return capture, build_rig(capture, RigOptions(max_bones=12)).rig


def test_a_real_body_loses_a_joint_and_gets_it_back(body):
    capture, rig = body
    positions = capture.positions[rig.frames]
    bearing = [j for j in range(1, rig.joint_count) if (rig.bone_joints == j).any()]
    lost = max(bearing, key=lambda j: np.ptp(np.abs(rig.joint_rotations[:, j, 0])))  # turns most
    fewer = refitted(rig, without(rig, lost), positions)
    start = fewer.skeleton_rmse_percent_before
    assert fewer.report.skeleton_rmse_percent > 1.3 * start
    names = list(fewer.rig.joint_names)
    above = names.index(rig.joint_names[rig.joint_parents[lost]])
    below = [names.index(rig.joint_names[k]) for k in np.flatnonzero(rig.joint_parents == lost)]
    back = refitted(fewer.rig, inserted(fewer.rig, above, below, rig.joint_positions[lost]), positions)
    assert back.report.skeleton_rmse_percent < 1.02 * start
    assert np.isclose(np.linalg.norm(back.rig.joint_rotations, axis=-1), 1).all()
