"""``resample``, ``train-dictionary`` and ``bake --resample``."""

import json
import runpy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gaussianimate.core.cli import main
from gaussianimate.core.cloud import GaussianCloud
from gaussianimate.core.formats import read_cloud, write_cloud
from gaussianimate.core.rigging.motion_file import Motion, save_motion
from gaussianimate.core.rigging.posing import outer_bone_transforms
from gaussianimate.core.rigging.rig_file import load_rig, save_rig

chain = runpy.run_path(str(Path(__file__).parents[1] / "rigging" / "synthetic.py"))["chain"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A rig of a bent tube, its splats, large ones, and a motion that bends it."""
    path = tmp_path_factory.mktemp("resample")
    frames = chain(2, count=8)["frames"].astype(np.float32)
    np.savez(path / "capture.npz", vertices=frames)
    assert main(["rig", str(path / "capture.npz"), "-o", str(path / "rig.npz"), "--max-bones", "3"]) == 0
    rig = _blended(load_rig(path / "rig.npz"))
    save_rig(rig, path / "rig.npz")
    count = rig.point_count
    size = 0.05 * np.linalg.norm(np.ptp(rig.rest, axis=0))
    cloud = GaussianCloud(
        rig.rest,
        np.tile(np.array([1, 0, 0, 0], np.float32), (count, 1)),
        np.full((count, 3), size, np.float32),
        np.full(count, 0.9, np.float32),
        np.zeros((count, 1, 3), np.float32),
    )
    write_cloud(cloud, path / "cloud.ply")
    turns = np.zeros((3, rig.joint_count, 4))
    turns[:, :, 0] = 1
    turns[1:, 1:] = np.cos(0.4), 0, np.sin(0.4), 0
    save_motion(Motion(turns, np.zeros((3, 3)), 24.0), path / "motion.npz")
    return path


def _blended(rig):
    """The rig with weights that blend softly between the bones, by the distance to their middles."""
    carried = [rig.rest[rig.indices[:, 0] == bone] for bone in range(rig.bone_count)]
    middles = np.stack([points.mean(axis=0) if len(points) else np.full(3, 9.0) for points in carried])
    squared = ((rig.rest[:, None] - middles) ** 2).sum(axis=2)
    weights = np.exp(-20 * squared / squared.mean())
    weights /= weights.sum(axis=1, keepdims=True)
    order = np.argsort(-weights, axis=1)
    weights = np.take_along_axis(weights, order, axis=1).astype(np.float32)
    return replace(rig, indices=order.astype(np.int32), weights=weights)


def command(folder, *more):
    paths = ["--rig", str(folder / "rig.npz"), "--motion", str(folder / "motion.npz")]
    return ["resample", str(folder / "cloud.ply"), *paths, *map(str, more)]


def test_it_splits_and_writes_a_cloud_and_its_rig(folder, capsys):
    out, rig_out = folder / "fine.ply", folder / "fine_rig.npz"
    assert main(command(folder, "--epsilon", "0.01", "-o", out, "--rig-output", rig_out, "--json")) == 0
    report = json.loads(capsys.readouterr().out)
    before, after = read_cloud(folder / "cloud.ply")[0], read_cloud(out)[0]
    assert report["before"] == len(before) and report["after"] == len(after) > len(before)
    assert report["epsilon"] == 0.01 and sum(report["depths"]) == len(after)
    assert len(before) + 4 * sum(report["passes"]) == len(after)
    rig, fine = load_rig(folder / "rig.npz"), load_rig(rig_out)
    assert np.allclose(fine.rest, after.positions) and fine.joint_names == rig.joint_names
    posed = folder / "posed.npz"
    motion = str(folder / "motion.npz")
    assert main(["pose", str(rig_out), "--motion", motion, "-o", str(posed)]) == 0
    assert np.load(posed)["vertices"].shape == (3, len(after), 3)


def test_every_splat_can_be_split(folder):
    out = folder / "uniform.ply"
    assert main(command(folder, "--mode", "uniform", "-o", out)) == 0
    assert len(read_cloud(out)[0]) == 5 * len(read_cloud(folder / "cloud.ply")[0])


def test_the_poses_of_the_capture_are_the_default(folder, capsys):
    paths = ["--rig", str(folder / "rig.npz"), "-o", str(folder / "own.ply"), "--json"]
    assert main(["resample", str(folder / "cloud.ply"), *paths, "--epsilon", "auto"]) == 0
    assert json.loads(capsys.readouterr().out)["epsilon"] is not None


def test_bake_resamples_on_the_way_out(folder, capsys):
    from gaussianimate.core.deform.deform import deform_cloud
    from gaussianimate.core.resample.resample import ResampleOptions, resample
    from gaussianimate.core.skinning.skin import make_skin

    baked = folder / "baked"
    paths = ["--cloud", str(folder / "cloud.ply"), "--motion", str(folder / "motion.npz"), "-o", str(baked)]
    assert main(["bake", str(folder / "rig.npz"), *paths, "--resample", "0.01"]) == 0
    rig = load_rig(folder / "rig.npz")
    cloud = read_cloud(folder / "cloud.ply")[0]
    turns = np.load(folder / "motion.npz")
    poses = outer_bone_transforms(rig, turns["rotations"], turns["root_translation"])
    skin = make_skin(cloud.positions, rig.indices, rig.weights)
    found = resample(cloud, skin, poses, ResampleOptions(epsilon=0.01))
    expected = deform_cloud(found.cloud, found.skin, poses[2])
    written = read_cloud(sorted(baked.iterdir())[2])[0]
    assert np.allclose(written.positions, expected.positions, atol=1e-5)
    assert len(written) == len(found.cloud) > len(cloud)


@pytest.mark.parametrize(
    "more, problem",
    [
        (["--epsilon", "0.01", "-o", "cloud.ply"], "is read by this command"),
        (["--epsilon", "0.01", "-o", "nowhere/out.ply"], "there is no folder"),
        (["--budget", "0.1", "-o", "out.ply"], "budget"),
        (["--rig-output", "out.ply", "-o", "./out.ply"], "out.ply: ends in .ply, but"),
        (["--rig-output", "out.npz", "-o", "./out.npz"], "out.npz: ends in .npz, but"),
        (["-o", "."], "it is a folder"),
    ],
)
def test_mistakes_are_one_sentence(folder, capsys, monkeypatch, more, problem):
    monkeypatch.chdir(folder)
    assert main(command(folder, *more)) == 1
    error = capsys.readouterr().err
    assert problem in error and "Traceback" not in error


def test_a_budget_without_end(folder, capsys):
    out = folder / "budget.ply"
    assert main(command(folder, "--epsilon", "0.01", "--budget", "inf", "--json", "-o", out)) == 0
    assert json.loads(capsys.readouterr().out)["after"] == len(read_cloud(out)[0])


@pytest.mark.parametrize(
    "option, value, problem",
    [
        ("--conditioning", "nan", "conditioning must be 0 or more"),
        ("--conditioning", "inf", "conditioning must be 0 or more"),
        ("--threads", "-1", "use 1 or more"),
        ("--threads", "0", "use 1 or more"),
        ("--seed", str(2**64), "seed"),
        ("--output", ".", "it is a folder"),
    ],
)
def test_mistakes_in_training_are_one_sentence(tmp_path, capsys, monkeypatch, option, value, problem):
    monkeypatch.chdir(tmp_path)
    small = ["--iterations", "1", "--rays", "8"]
    assert main(["train-dictionary", "-o", "x.npz", *small, option, value]) == 1
    error = capsys.readouterr().err
    assert problem in error and "Traceback" not in error and not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", ["0", "-1", "much", "nan", "inf", "1e39"])
def test_epsilon_is_auto_or_a_length(folder, text):
    with pytest.raises(SystemExit):
        main(command(folder, "--epsilon", text, "-o", folder / "x.ply"))


def test_training_by_command(folder, monkeypatch, capsys):
    from gaussianimate.core.resample import trainer
    from gaussianimate.core.resample.dictionary import load_dictionary

    monkeypatch.setattr(trainer, "MEASURE_RAYS", 64)
    monkeypatch.setattr(trainer.check_rays, "__defaults__", (64,))
    out = folder / "dictionary.npz"
    options = ["--iterations", "1", "--rays", "16", "--seed", "3", "--threads", "1"]
    assert main(["train-dictionary", "-o", str(out), *options]) == 0
    assert load_dictionary(out).metadata["seed"] == 3 and "diameter" in capsys.readouterr().err
    assert main(["train-dictionary", "-o", str(out), "--rays", "0"]) == 1
