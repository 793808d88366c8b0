"""Progressive refinement: more captures make a better rig, and leave alone what they do not concern."""

import runpy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from gaussianimate.core.cli import main
from gaussianimate.core.errors import Cancelled, CaptureError, RigError
from gaussianimate.core.formats import read_capture
from gaussianimate.core.joined_capture import join_captures
from gaussianimate.core.motion.database import build_database
from gaussianimate.core.motion.extended import extend_motion
from gaussianimate.core.motion.learned import learn_motion
from gaussianimate.core.refine.refine import ALIKE, RefineOptions, refine_rig
from gaussianimate.core.rigging.build import RigOptions, build_rig
from gaussianimate.core.rigging.posing import posed_points
from gaussianimate.core.rigging.rig_file import load_rig, save_rig
from gaussianimate.core.rigging.skeleton.given import given_poses, skeleton_in_frames
from gaussianimate.core.rigging.skeleton.kinematics import joint_transforms
from gaussianimate.core.rotations import axis_angle_to_quaternion

synthetic = SimpleNamespace(**runpy.run_path(str(Path(__file__).parents[1] / "rigging" / "synthetic.py")))
DATA = Path(__file__).parents[4] / "shared" / "data"


@pytest.fixture(scope="module", autouse=True)
def coarse_surfaces():
    """Surfaces of a quarter of the usual vertices: nothing here hangs on their detail."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gaussianimate.core.rigging.curves.surface.VERTEX_BUDGET", 2000)
        yield


def bar(angles, blend=0.15):
    """Frames (F, N, 3) of a tube along x, bent about z by angles (F, 2) at two thirds of its length."""
    chain, count = synthetic.chain(3, count=2), len(angles)
    joints = chain["joints"]
    turns = np.concatenate([np.zeros((count, 1)), angles], axis=1)
    axes = np.broadcast_to([0.0, 0, 1], (count, 3, 3))
    transforms = joint_transforms(
        np.arange(3) - 1, joints, axis_angle_to_quaternion(axes, turns), np.zeros((count, 3))
    )
    blended = np.einsum("nk,fnkab->fnab", chain["weights"], transforms[:, chain["indices"]])
    return np.einsum("fnab,nb->fna", blended[..., :3], chain["rest"]) + blended[..., 3]


def swing(count, reach):
    return reach * np.sin(np.linspace(0, 2 * np.pi, count))


@pytest.fixture(scope="module")
def stiff():
    """A bar whose second joint is stiff in the first capture and bends in the next."""
    first = synthetic.capture(bar(np.stack([swing(16, 0.8), np.zeros(16)], axis=1)), name="first")
    second = synthetic.capture(bar(np.stack([swing(16, 0.4), swing(16, 1.0)], axis=1)), name="second")
    return first, second, build_rig(first, RigOptions(max_bones=4)).rig


@pytest.fixture(scope="module")
def bent(stiff):
    """The rig of the stiff bar, refined by the bending one."""
    first, second, rig = stiff
    joined = join_captures(first, second)
    return rig, joined, refine_rig(rig, joined, RefineOptions(max_bones=4))


def hinges(rig):
    """Joints that joints hang on, the root aside."""
    return np.intersect1d(rig.joint_parents, np.arange(1, rig.joint_count))


def errors(rig, capture):
    """Root mean square error of each frame, of the diagonal."""
    size = np.linalg.norm(np.ptp(rig.rest, axis=0))
    replayed = np.stack([posed_points(rig, pose) for pose in rig.bone_transforms])
    return np.sqrt(((replayed - capture.positions[rig.frames]) ** 2).sum(-1).mean(-1)) / size


def test_a_limb_that_was_still_gets_its_joint_where_it_bends(bent):
    rig, joined, result = bent
    refined = result.rig
    assert len(hinges(rig)) == 1 and len(hinges(refined)) == 2
    new = [j for j in hinges(refined) if result.joint_origins[j] < 0]
    assert len(new) == 1
    assert np.linalg.norm(refined.joint_positions[new[0]] - [8 / 3, 0, 0]) < 0.03 * 4
    assert errors(refined, joined).max() < 0.01 < errors(result_before(rig, joined), joined).max()


def result_before(rig, joined):
    from gaussianimate.core.refine.posed_rig import pose_rig

    return pose_rig(rig, joined)[0].rig


def test_joints_and_bones_that_were_there_keep_name_place_and_order(bent):
    rig, _, result = bent
    refined, origins = result.rig, result.joint_origins
    moving = np.append(0, hinges(rig))
    assert set(moving) <= set(origins)
    for origin in moving:
        joint = int(np.flatnonzero(origins == origin)[0])
        assert refined.joint_names[joint] == rig.joint_names[origin]
        np.testing.assert_array_equal(refined.joint_positions[joint], rig.joint_positions[origin])
    known = origins[origins >= 0]
    assert (np.diff(known) > 0).all() or set(known) < set(range(rig.joint_count))
    stayed = result.bone_origins[result.bone_origins >= 0]
    assert (np.diff(stayed) > 0).all() and len(stayed) >= rig.bone_count - 1
    np.testing.assert_array_equal(refined.rest, rig.rest)
    assert refined.canonical_frame == rig.canonical_frame


def test_the_report_says_what_the_capture_bought(bent):
    rig, joined, result = bent
    report, refined = result.report, result.rig
    assert report.joints == (2, 3) and report.bones == (rig.bone_count, refined.bone_count)
    assert report.frames == (16, 32)
    assert report.replay.after == pytest.approx(
        100 * np.sqrt((errors(refined, joined) ** 2).mean()), rel=1e-2
    )
    before = errors(result_before(rig, joined), joined)
    assert report.replay.before == pytest.approx(100 * np.sqrt((before**2).mean()), rel=1e-2)
    assert report.skeleton.new[1] < 0.3 * report.skeleton.new[0]
    assert 0 < report.coverage.median <= report.coverage.worst < 180
    assert any("2 to 3 joints" in sentence for sentence in report.sentences())


def test_nothing_new_leaves_the_rig_as_it_is(stiff):
    first, _, rig = stiff
    again = synthetic.capture(bar(np.stack([swing(9, 0.7), np.zeros(9)], axis=1)), name="again")
    result = refine_rig(rig, join_captures(first, again), RefineOptions(max_bones=4))
    refined = result.rig
    for name in ("indices", "weights", "joint_positions", "joint_parents", "bone_joints"):
        np.testing.assert_array_equal(getattr(refined, name), getattr(rig, name), err_msg=name)
    for name in ("bone_transforms", "joint_rotations", "root_translations"):
        np.testing.assert_array_equal(getattr(refined, name)[: rig.frame_count], getattr(rig, name))
    assert any("nothing new" in note for note in result.report.notes)
    assert result.report.replay.old[0] == result.report.replay.old[1]
    assert result.report.replay.new[0] < max(ALIKE * result.report.replay.old[0], 0.03)


def test_learned_motion_goes_on_where_the_rig_stayed(stiff):
    first, _, rig = stiff
    again = synthetic.capture(bar(np.stack([swing(9, 0.7), np.zeros(9)], axis=1)), name="again")
    refined = refine_rig(rig, join_captures(first, again)).rig
    before = learn_motion(replace(rig, clips=np.zeros(rig.frame_count, np.int32)))
    after = extend_motion(before, rig, refined)
    database, anew = after.predictor.database, build_database(refined, refined.clips, refined.up)
    kept = before.predictor.database.frame_count
    np.testing.assert_array_equal(database.rotations[:kept], before.predictor.database.rotations)
    np.testing.assert_array_equal(database.clips, anew.clips)
    np.testing.assert_allclose(database.residual_offsets, anew.residual_offsets, atol=1e-6)
    np.testing.assert_array_equal(after.frames, refined.frames)


def test_learned_motion_is_made_anew_where_the_rig_changed(bent):
    rig, _, result = bent
    after = extend_motion(learn_motion(rig), rig, result.rig)
    assert after.joint_names == result.rig.joint_names
    assert after.predictor.database.bone_count == result.rig.bone_count


def test_no_new_joints_where_none_are_wanted(stiff):
    first, second, rig = stiff
    options = RefineOptions(max_bones=4, new_joints=False)
    result = refine_rig(rig, join_captures(first, second), options)
    assert result.rig.joint_names == rig.joint_names
    np.testing.assert_array_equal(result.joint_origins, np.arange(rig.joint_count))
    assert result.report.replay.after < 0.5 * result.report.replay.before


def test_a_rig_of_one_joint_gets_a_skeleton(stiff):
    _, second, _ = stiff
    still = synthetic.capture(np.repeat(second.positions[:1], 3, axis=0), name="still")
    rig = build_rig(still).rig
    assert rig.joint_count == 1
    result = refine_rig(rig, join_captures(still, second), RefineOptions(max_bones=4))
    assert len(hinges(result.rig)) == 2 and result.rig.bone_count >= 3
    assert result.rig.joint_names[0] == rig.joint_names[0] and result.joint_origins[0] == 0
    assert result.report.replay.after < 0.5


def read(name, every):
    """A capture of every so many of its points."""
    path = DATA / name / f"{name}.npz"
    if not path.is_file():
        pytest.skip(f"no {path}")
    capture = read_capture(path)
    return replace(capture, positions=capture.positions[:, ::every], faces=None)


def test_stages_end_where_one_stage_does(monkeypatch):
    monkeypatch.setattr("gaussianimate.core.rigging.curves.surface.VERTEX_BUDGET", 6000)
    capture = replace(read("cesium-man", 2), skeleton=None)
    single = build_rig(capture, RigOptions(max_bones=20))
    half = capture.take_frames(np.arange(capture.frame_count // 2))
    result = refine_rig(build_rig(half, RigOptions(max_bones=20)).rig, capture, RefineOptions(max_bones=20))
    report = result.report
    assert abs(len(hinges(result.rig)) - len(hinges(single.rig))) <= 1
    assert result.rig.bone_count <= 20 and result.rig.frame_count == single.rig.frame_count
    assert report.replay.after < 1.5 * single.report.rmse_percent
    assert report.skeleton.after < 2.5 * single.report.skeleton_rmse_percent


def test_a_given_skeleton_gives_the_poses_of_all_frames():
    capture = read("cesium-man", 6)
    part = capture.take_frames(np.arange(40))
    rig = build_rig(part, RigOptions(max_bones=12, skeleton="given")).rig
    both = capture.take_frames(np.arange(60))
    result = refine_rig(rig, both, RefineOptions(max_bones=12))
    whole = build_rig(both, RigOptions(max_bones=12, skeleton="given")).rig
    assert result.rig.joint_names == rig.joint_names == whole.joint_names
    np.testing.assert_allclose(
        np.abs((result.rig.joint_rotations * whole.joint_rotations).sum(-1)), 1, atol=1e-9
    )
    np.testing.assert_array_equal(result.rig.joint_bind, rig.joint_bind)
    without = refine_rig(rig, replace(both, skeleton=None), RefineOptions(max_bones=12))
    assert any("fitted to the points" in note for note in without.report.notes)
    fitted = without.rig.joint_rotations
    again = skeleton_in_frames(without.rig, part.skeleton, 60)
    turns, places = given_poses(without.rig, again)
    np.testing.assert_allclose(np.abs((turns * fitted).sum(-1)), 1, atol=1e-6)
    np.testing.assert_allclose(places, without.rig.root_translations, atol=1e-6)
    np.testing.assert_array_equal(fitted[:40], rig.joint_rotations)
    assert without.report.skeleton.new[1] < 1.5 * result.report.skeleton.new[1] + 0.1


def test_what_is_no_capture_of_the_asset_is_refused(stiff):
    first, second, rig = stiff
    rng = np.random.default_rng(0)

    def refused(capture, match, error=CaptureError):
        with pytest.raises(error, match=match):
            refine_rig(rig, capture)

    shuffled = replace(second, positions=second.positions[:, rng.permutation(second.point_count)])
    refused(join_captures(first, shuffled), "same order")
    refused(
        join_captures(first, replace(second, positions=2 * second.positions)), "new frames are 2 times as"
    )
    refused(first, "no frame that the rig was not built from")
    refused(join_captures(second, first), "not built from", RigError)
    refused(replace(second, positions=second.positions[:, 1:]), "points and the rig")
    with pytest.raises(CaptureError, match="points and first"):
        join_captures(first, replace(second, positions=second.positions[:, 1:]))
    with pytest.raises(CaptureError, match="at least 1"):
        refine_rig(rig, first, RefineOptions(max_bones=0))


def test_refinement_is_cancelled_at_any_stage(stiff):
    first, second, rig = stiff
    joined, stages = join_captures(first, second), []

    def note(stage, fraction):
        if stage not in stages:
            stages.append(stage)

    refine_rig(rig, joined, RefineOptions(max_bones=4), note)
    assert {"Poses of skin bones", "Skin bones", "Weights"} <= set(stages)
    for wanted in ("Poses of skin bones", "Skeleton"):
        assert wanted in stages

        def cancel(stage, fraction, wanted=wanted):
            if stage == wanted:
                raise Cancelled("cancelled")

        with pytest.raises(Cancelled):
            refine_rig(rig, joined, RefineOptions(max_bones=4), cancel)


def test_command_line(stiff, tmp_path, capsys):
    first, second, rig = stiff
    paths = [tmp_path / f"{capture.name}.npz" for capture in (first, second)]
    for path, capture in zip(paths, (first, second), strict=True):
        np.savez(path, vertices=capture.positions, fps=np.array(24.0))
    save_rig(rig, tmp_path / "rig.npz")
    command = ["refine", tmp_path / "rig.npz", *paths, "-o", tmp_path / "more.npz", "--max-bones", "4"]
    assert main([str(word) for word in command]) == 0
    assert "2 to 3 joints" in capsys.readouterr().out
    refined = load_rig(tmp_path / "more.npz")
    assert refined.frame_count == 32 and len(hinges(refined)) == 2
    np.testing.assert_array_equal(refined.clips, np.repeat([0, 1], 16))
    command[-3] = tmp_path / "rig.npz"
    assert main([str(word) for word in command]) == 1  # never over what it reads
