"""The pipeline from capture to rig: quality on a known body, and what is hardly a capture at all."""

import runpy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from gaussianimate.core.errors import Cancelled, CaptureError
from gaussianimate.core.rigging.build import RigOptions, build_rig
from gaussianimate.core.rigging.curves import surface
from gaussianimate.core.rigging.posing import outer_bone_transforms, posed_points
from gaussianimate.core.rigging.rig_file import load_rig, save_rig

synthetic = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("synthetic.py"))))
USUAL_BUDGET = surface.VERTEX_BUDGET
DATA = Path(__file__).parents[4] / "shared" / "data"


@pytest.fixture(scope="module", autouse=True)
def coarse_surfaces():
    """Surfaces of a quarter of the usual vertices: only skeletons of bodies hang on their detail."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gaussianimate.core.rigging.curves.surface.VERTEX_BUDGET", 2000)
        yield


@pytest.fixture(scope="module")
def chain():
    chain = synthetic.chain(3)
    return chain, build_rig(synthetic.capture(chain["frames"]), RigOptions(max_bones=3))


def test_a_bent_tube_gets_its_joints_and_replays(chain):
    truth, result = chain
    rig, report = result.rig, result.report
    assert rig.bone_count == 3 and report.rmse_percent < 0.2
    assert report.skeleton_rmse_percent < 2 * report.rmse_percent + 1
    diagonal = np.linalg.norm(np.ptp(rig.rest, axis=0))
    for joint in truth["joints"][1:]:
        assert np.linalg.norm(rig.joint_positions - joint, axis=1).min() < 0.03 * diagonal
    hinges = (rig.joint_parents >= 0) & np.isin(np.arange(rig.joint_count), rig.joint_parents)
    assert hinges.sum() == 2
    assert set(rig.bone_joints) <= set(rig.joint_parents) | {0}  # ends carry nothing


def test_the_reported_errors_are_those_of_the_points(chain):
    truth, result = chain
    rig, report = result.rig, result.report
    replayed = np.stack([posed_points(rig, pose) for pose in rig.bone_transforms])
    apart = np.sqrt(((replayed - truth["frames"]) ** 2).sum(-1).mean())
    assert apart == pytest.approx(report.rmse, rel=0.02, abs=1e-5)
    skeleton = outer_bone_transforms(rig, rig.joint_rotations, rig.root_translations)
    driven = np.stack([posed_points(rig, pose) for pose in skeleton])
    percent = 100 * np.sqrt(((driven - truth["frames"]) ** 2).sum(-1).mean())
    assert percent / np.linalg.norm(np.ptp(rig.rest, axis=0)) == pytest.approx(
        report.skeleton_rmse_percent, rel=0.02
    )


def test_a_rig_is_the_same_every_time_and_survives_its_file(chain, tmp_path):
    truth, result = chain
    again = build_rig(synthetic.capture(truth["frames"]), RigOptions(max_bones=3)).rig
    save_rig(result.rig, tmp_path / "rig.npz")
    loaded = load_rig(tmp_path / "rig.npz")
    for rig in (again, loaded):
        np.testing.assert_array_equal(rig.joint_positions, result.rig.joint_positions)
        np.testing.assert_array_equal(rig.joint_rotations, result.rig.joint_rotations)
        assert rig.joint_names == result.rig.joint_names


def test_a_rigid_motion_of_all_frames_keeps_the_skeleton(chain):
    """K10: the same tree; local rotations but the root's stay."""
    truth, result = chain
    frames = truth["frames"].copy()
    frames[1:] = frames[1:] @ np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]]).T + [1.0, 2, 3]
    moved = build_rig(synthetic.capture(frames), RigOptions(max_bones=3)).rig
    np.testing.assert_array_equal(moved.joint_parents, result.rig.joint_parents)
    np.testing.assert_allclose(moved.joint_positions, result.rig.joint_positions, atol=0.02)
    same = np.abs((moved.joint_rotations[1:, 1:] * result.rig.joint_rotations[1:, 1:]).sum(-1))
    assert same.min() > np.cos(0.02)


@pytest.mark.parametrize("scale", [0.01, 100.0])
def test_scale_turn_and_place_of_the_capture_do_not_matter(chain, scale):
    """Every joint goes where the motion of space takes it, and the errors stay the same share."""
    truth, result = chain
    turn = np.array([[0.36, 0.48, -0.8], [-0.8, 0.6, 0.0], [0.48, 0.64, 0.6]])
    there = scale * np.array([20.0, -15, 10])
    moved = build_rig(synthetic.capture(scale * truth["frames"] @ turn.T + there), RigOptions(max_bones=3))
    expected = scale * result.rig.joint_positions @ turn.T + there
    diagonal = scale * np.linalg.norm(np.ptp(result.rig.rest, axis=0))
    apart = np.linalg.norm(expected[:, None] - moved.rig.joint_positions, axis=-1)
    assert moved.rig.joint_count == result.rig.joint_count
    assert apart.min(axis=1).max() < 0.03 * diagonal
    assert moved.report.skeleton_rmse_percent < result.report.skeleton_rmse_percent + 0.3


def test_two_parts_get_two_bones_and_a_joint_between():
    rng = np.random.default_rng(1)
    box = rng.uniform(-1, 1, size=(400, 3)) * [1, 0.3, 0.3]
    rest = np.concatenate([box - [1.05, 0, 0], box + [1.05, 0, 0]])
    angles = np.sin(np.linspace(0, 6, 30))
    frames = np.repeat(rest[None], 30, axis=0)
    for frame, angle in zip(frames, angles, strict=True):
        c, s = np.cos(angle), np.sin(angle)
        frame[400:] = rest[400:] @ np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]).T
    result = build_rig(synthetic.capture(frames))
    assert result.rig.bone_count == 2
    assert result.report.skeleton_rmse_percent < 1
    assert len(set(result.rig.bone_joints)) == 2
    hinge = result.rig.joint_positions[max(result.rig.bone_joints)]
    assert np.linalg.norm(hinge[:2]) < 0.1 * np.linalg.norm(np.ptp(rest, axis=0))


def small(kind):
    rng = np.random.default_rng(2)
    body = rng.normal(size=(300, 3))
    swing = np.linspace(0, 1, 6)[:, None, None]
    return {
        "static": np.repeat(body[None], 5, axis=0),
        "single frame": body[None],
        "moving rigidly": body + swing * [3.0, 1, 0],
        "one point": np.zeros((4, 1, 3)) + swing[:4],
        "two points": np.array([[0.0, 0, 0], [1, 0, 0]]) + swing * [[0, 0, 0], [0, 1, 0]],
        "ten points": body[:10] + swing * body[10:20],
        "all in one place": np.zeros((5, 50, 3)),
        "duplicates": np.repeat(body[:40], 5, axis=0) + swing * np.repeat(body[40:80], 5, axis=0) * 0.3,
        "a line": np.linspace(0, 1, 100)[:, None] * [1, 0, 0]
        + swing * (np.arange(100)[:, None] > 50) * [0, 1, 0],
        "a flat sheet": body * [1, 1, 0] + swing * (body[:, :1] > 0) * [0, 0, 1],
        "two far components": body[:200] + (np.arange(200)[:, None] > 100) * (9 + swing) * [1.0, 0, 0],
    }[kind]


@pytest.mark.parametrize(
    "kind",
    [
        "static",
        "single frame",
        "moving rigidly",
        "one point",
        "two points",
        "ten points",
        "all in one place",
        "duplicates",
        "a line",
        "a flat sheet",
        "two far components",
    ],
)
def test_degenerate_captures_give_a_usable_rig(kind):
    result = build_rig(synthetic.capture(small(kind)), RigOptions(max_bones=6))
    result.rig.check()
    report = result.report
    assert np.isfinite([report.rmse, report.rmse_percent, report.skeleton_rmse_percent]).all()
    if kind in ("static", "single frame", "moving rigidly", "all in one place"):
        assert result.rig.bone_count == 1 and result.rig.joint_count == 1
        assert report.skeleton_rmse_percent < 1e-3
    notes = " ".join(report.notes)
    for word, kinds in {
        "No motion": ["static"],
        "rigid": ["moving rigidly"],
        "single frame": ["single frame"],
        "weights drawn": ["single frame"],
    }.items():
        assert (word in notes) or kind not in kinds


def test_invalid_frames_are_skipped_and_named():
    frames = np.repeat(synthetic.tube(rings=20)[None], 6, axis=0)
    frames += 0.1 * np.arange(6)[:, None, None]
    frames[[0, 3]] = np.nan
    result = build_rig(synthetic.capture(frames))
    assert result.rig.frames.tolist() == [1, 2, 4, 5] and result.rig.canonical_frame == 1
    assert any("2 empty" in note for note in result.report.notes)
    assert any("Frame 0" in note for note in result.report.notes)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (RigOptions(max_bones=0), "at least 1"),
        (RigOptions(max_influences=5), "1 to 4"),
        (RigOptions(joint_threshold=2.0), "threshold"),
        (RigOptions(canonical_frame=7), "frames 0 to 1"),
    ],
)
def test_options_out_of_range_are_named(options, text):
    with pytest.raises(CaptureError, match=text):
        build_rig(synthetic.capture(np.zeros((2, 9, 3))), options)


def test_faces_without_an_area_are_no_mesh(chain):
    faces = np.array([[0, 0, 0], [1, 2, 1]], np.int32)
    flat = build_rig(replace(synthetic.capture(chain[0]["frames"]), faces=faces), RigOptions(max_bones=3)).rig
    assert np.allclose(flat.joint_positions, chain[1].rig.joint_positions)


def test_a_capture_too_large_to_compute_with_is_said():
    capture = synthetic.capture(synthetic.chain(2, count=4)["frames"] * 1e16)
    with pytest.raises(CaptureError, match="m from the origin; scale the capture down"):
        build_rig(capture, RigOptions(max_bones=3))


def test_nothing_to_rig_is_said():
    capture = synthetic.capture(np.zeros((2, 9, 3)))
    with pytest.raises(CaptureError, match="no usable frame"):
        build_rig(replace(capture, frame_valid=np.zeros(2, dtype=bool)))
    with pytest.raises(CaptureError, match="nothing to rig"):
        build_rig(synthetic.capture(np.zeros((2, 0, 3))))


def test_progress_names_stages_and_cancels():
    capture, options = synthetic.capture(synthetic.chain(2, count=8)["frames"]), RigOptions(max_bones=3)
    stages = []

    def note(stage, fraction):
        assert 0 <= fraction <= 1
        stages.append(stage)

    build_rig(capture, options, note)
    assert {"Skin bones", "Skeleton", "Joint poses"} <= set(stages)
    for stop in ("Skin bones", "Skeleton", "Joint poses"):

        def cancel(stage, fraction, stop=stop):
            if stage == stop:
                raise Cancelled("cancelled")

        with pytest.raises(Cancelled):
            build_rig(capture, options, cancel)


@pytest.fixture(scope="module")
def fox():
    """Every fifth frame of the fox, its true joints in them, and a way to rig and measure variants."""
    if not (DATA / "fox").is_dir():
        pytest.skip("the fox sequence is not here")
    with np.load(DATA / "fox" / "fox.npz") as data:
        used = data["gt_weights"].sum(axis=0) > 1
        return SimpleNamespace(
            frames=data["vertices"][::5].astype(float),
            faces=data["faces"],
            joints=data["joints"][::5][:, used],
        )


def good_skeleton(frames, faces, joints, canonical=0, within=0.04):
    """Rig a variant and check what is asked of any skeleton; joints (F, T, 3) are the true ones."""
    options = RigOptions(max_bones=30, canonical_frame=canonical)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(surface, "VERTEX_BUDGET", USUAL_BUDGET)
        result = build_rig(synthetic.capture(frames, faces), options)
    rig, report = result.rig, result.report
    assert report.skeleton_rmse_percent <= 2 * report.rmse_percent + 1
    assert not any("outside" in note for note in report.notes)
    assert (rig.joint_parents < 0).sum() == 1
    ends = ~np.isin(np.arange(rig.joint_count), rig.joint_parents)
    assert 5 <= ends.sum() <= 7  # four legs, head, tail, perhaps jaw or ears
    distance = np.linalg.norm(joints[canonical][:, None] - rig.joint_positions, axis=-1)
    diagonal = np.linalg.norm(np.ptp(rig.rest, axis=0))
    assert np.median(distance.min(axis=1)) < within * diagonal
    assert np.median(distance.min(axis=0)) < within * diagonal
    return result


def test_the_fox_stands_on_its_legs(fox):
    good_skeleton(fox.frames, fox.faces, fox.joints)


def test_a_soup_of_triangles_and_another_rest_pose(fox):
    """Importers give every triangle its own corners; the rest pose is one in mid-walk."""
    corners = fox.faces.ravel()
    faces = np.arange(len(corners), dtype=np.int32).reshape(-1, 3)
    good_skeleton(fox.frames[:, corners], faces, fox.joints, canonical=16, within=0.05)


def test_points_without_a_mesh(fox):
    """Few points bear no surface of legs a finger thick: the joints are less exact."""
    good_skeleton(fox.frames, None, fox.joints, within=0.06)
