"""The command line: what it writes, prints and returns."""

import json
import os
import runpy
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from gaussianimate.core.cli import main
from gaussianimate.core.cloud import GaussianCloud
from gaussianimate.core.formats import read_cloud, write_cloud
from gaussianimate.core.rigging.rig_file import load_rig

synthetic = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("rigging") / "synthetic.py")))
KEYS = [
    "points",
    "frames",
    "bones",
    "joints",
    "rmse",
    "rmse_percent_diagonal",
    "skeleton_rmse_percent_diagonal",
    "seconds",
    "peak_memory_mb",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a capture of a bent tube (capture.npz)."""
    path = tmp_path_factory.mktemp("cli")
    np.savez(path / "capture.npz", vertices=synthetic.chain(2, count=8)["frames"].astype(np.float32))
    return path


@pytest.fixture(scope="module")
def rig(folder):
    """The rig of that capture and the object printed with it."""
    command = [
        sys.executable,
        "-m",
        "gaussianimate",
        "rig",
        "capture.npz",
        "-o",
        "rig.npz",
        "--max-bones",
        "3",
    ]
    done = subprocess.run([*command, "--json"], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return SimpleNamespace(path=folder / "rig.npz", stdout=done.stdout, stderr=done.stderr)


def test_rig_prints_one_object_as_its_last_line(rig):
    report = json.loads(rig.stdout.splitlines()[-1])
    assert list(report) == KEYS
    with np.load(rig.path) as file:
        assert report["points"] == len(file["rest"]) and report["frames"] == len(file["frames"])
        assert report["bones"] == len(file["bone_joints"]) and report["joints"] == len(file["joint_parents"])
        diagonal = np.linalg.norm(np.ptp(file["rest"], axis=0))
    assert report["rmse_percent_diagonal"] == pytest.approx(100 * report["rmse"] / diagonal, rel=1e-4)
    assert all(isinstance(s, float) and s >= 0 for s in report["seconds"].values())
    assert {"read", "ssdr", "joints"} <= set(report["seconds"])
    assert report["peak_memory_mb"] > 10
    assert "Skin bones" in rig.stderr and "Skin bones" not in rig.stdout


def test_pose_replays_a_half_open_range_of_frames(rig, folder):
    out = folder / "replay.npz"
    assert main(["pose", str(rig.path), "--frames", "2:5", "-o", str(out)]) == 0
    with np.load(out) as replay, np.load(folder / "capture.npz") as capture:
        assert replay["frames"].tolist() == [2, 3, 4]
        assert replay["vertices"].dtype == np.float32
        apart = replay["vertices"] - capture["vertices"][2:5]
    assert np.sqrt((apart**2).sum(-1).mean()) < 0.01
    assert main(["pose", str(rig.path), "--frames", ":", "-o", str(out)]) == 0
    with np.load(out) as replay:
        assert len(replay["vertices"]) == 8


def test_pose_follows_a_motion_and_rest_is_rest(rig, folder):
    with np.load(rig.path) as file:
        joints, rest, rotations = len(file["joint_parents"]), file["rest"], file["joint_rotations"]
    motion, out = folder / "motion.npz", folder / "posed.npz"
    np.savez(
        motion,
        rotations=np.concatenate([np.tile([1.0, 0, 0, 0], (2, joints, 1)), rotations[5:6]]),
        root_translation=np.array([[0.0, 0, 0], [0, 0, 2], [0, 0, 0]]),
    )
    assert main(["pose", str(rig.path), "--motion", str(motion), "-o", str(out)]) == 0
    with np.load(out) as posed:
        assert posed["vertices"].shape == (3, len(rest), 3)
        assert (posed["vertices"][0] == rest).all()
        np.testing.assert_allclose(posed["vertices"][1], rest + [0, 0, 2], atol=1e-6)
        assert np.abs(posed["vertices"][2] - rest).max() > 0.1


@pytest.mark.parametrize("secondary", ["auto", "match", "full"])
def test_secondary_motion_brings_a_captured_motion_back(rig, folder, secondary):
    with np.load(rig.path) as made:
        motion = {"rotations": made["joint_rotations"], "root_translation": made["root_translations"]}
    np.savez(folder / "again.npz", **motion)
    command = ["pose", str(rig.path), "--motion", str(folder / "again.npz"), "-o", str(folder / "out.npz")]
    assert main([*command, "--secondary", secondary]) == 0
    answered = np.load(folder / "out.npz")["vertices"]
    assert main(["pose", str(rig.path), "--frames", ":", "-o", str(folder / "out.npz")]) == 0
    captured = np.load(folder / "out.npz")["vertices"]
    size = np.linalg.norm(np.ptp(captured[0], axis=0))
    assert np.sqrt(((answered - captured) ** 2).sum(axis=-1).mean()) < 1e-3 * size


def test_bake_writes_the_posed_splats(rig, folder):
    with np.load(rig.path) as file:
        joints, rest = len(file["joint_parents"]), file["rest"]
    rng = np.random.default_rng(0)
    n = len(rest)
    cloud = GaussianCloud(
        rest,
        np.tile(np.float32([1, 0, 0, 0]), (n, 1)),
        np.full((n, 3), 0.02, np.float32),
        np.full(n, 0.5, np.float32),
        rng.normal(size=(n, 4, 3)).astype(np.float32),
    )
    write_cloud(cloud, folder / "cloud.ply")
    np.savez(
        folder / "slide.npz",
        rotations=np.tile([1.0, 0, 0, 0], (2, joints, 1)),
        root_translation=np.array([[0.0, 0, 0], [1, 0, 0]]),
    )
    command = ["bake", str(rig.path), "--cloud", str(folder / "cloud.ply"), "-o", str(folder / "baked")]
    assert main([*command, "--motion", str(folder / "slide.npz")]) == 0
    beside = [*command[:-1], str(folder), "--motion", str(folder / "slide.npz")]
    before = sorted(folder.iterdir())
    assert main(beside) == 1 and sorted(folder.iterdir()) == before, "a bake never joins its own capture"
    files = sorted((folder / "baked").iterdir())
    assert len(files) == 2
    still, moved = (read_cloud(file)[0] for file in files)
    np.testing.assert_allclose(still.positions, rest, atol=1e-6)
    np.testing.assert_allclose(moved.positions, rest + [1, 0, 0], atol=1e-5)
    np.testing.assert_allclose(moved.sh, cloud.sh, atol=1e-5)


def test_info_tells_of_rigs_and_captures(rig, folder, capsys):
    assert main(["info", str(rig.path)]) == 0
    made = load_rig(rig.path)
    moving = len({*made.joint_parents.tolist()} - {-1})
    ends = made.joint_count - moving
    assert ends > 0
    text = f"joints: {made.joint_count}, {moving} that move and {ends} that end a chain\n"
    assert text in capsys.readouterr().out
    assert main(["info", str(folder / "capture.npz")]) == 0
    assert "frames: 8" in capsys.readouterr().out


def test_names_a_terminal_has_no_letters_for(rig, folder):
    named = folder / "ü 東京.npz"
    named.write_bytes(rig.path.read_bytes())
    done = subprocess.run(
        [sys.executable, "-m", "gaussianimate", "info", named.name],
        cwd=folder,
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        timeout=300,
    )
    assert done.returncode == 0 and b"joints: " in done.stdout and b"\\u6771" in done.stdout


def test_it_works_where_nobody_listens(rig, folder):
    script = 'exec "$0" -m gaussianimate pose rig.npz --frames : --output deaf.npz 2>&- >&-'
    done = subprocess.run(["sh", "-c", script, sys.executable], cwd=folder, timeout=300)
    assert done.returncode == 0 and (folder / "deaf.npz").exists()
    script = 'exec "$0" -m gaussianimate rig capture.npz --max-bones 3 --output deaf_rig.npz 2>&-'
    done = subprocess.run(["sh", "-c", script, sys.executable], cwd=folder, capture_output=True, timeout=300)
    assert done.returncode == 0 and b"joints: " in done.stdout and (folder / "deaf_rig.npz").exists()


def test_names_in_a_file_do_not_steer_a_terminal(rig, folder, capsys):
    with np.load(rig.path) as made:
        names = made["joint_names"].astype("U20")
        names[0] = "\x1b[31mred"
        np.savez(folder / "red.npz", **{**made, "joint_names": names})
    assert main(["info", str(folder / "red.npz")]) == 0
    text = capsys.readouterr().out
    assert "red" in text and "\x1b" not in text


def test_a_capture_brings_its_skeleton(folder, monkeypatch, capsys):
    chain = synthetic.chain(2, count=8)
    arrays = {
        "vertices": chain["frames"].astype(np.float32),
        "joint_names": np.array(["thigh", "shin"]),
        "joint_parents": np.array([-1, 0]),
        "joint_rest": chain["joints"],
        "joint_mats": chain["transforms"],
        "clip": np.array([0, 0, 0, 0, 1, 1, 1, 1]),
    }
    np.savez(folder / "jointed.npz", **arrays)
    monkeypatch.chdir(folder)
    assert main(["info", "jointed.npz"]) == 0
    told = capsys.readouterr().out
    assert "clips: 2" in told and "given joints: 2" in told
    given = ["rig", "jointed.npz", "-o", "given.npz", "--max-bones", "2", "--skeleton", "given", "--json"]
    assert main(given) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["skeleton_rmse_percent_diagonal"] < 1
    assert main(["info", "given.npz"]) == 0
    assert "shin < thigh" in capsys.readouterr().out


@pytest.mark.parametrize(
    "command",
    [
        ["info", "missing.ply"],
        ["rig", "missing", "-o", "x.npz"],
        ["rig", "capture.npz", "-o", "nowhere/x.npz"],
        ["rig", "capture.npz", "-o", "x.npz", "--max-influences", "9"],
        ["rig", "capture.npz", "-o", "x.npz", "--canonical", "99"],
        ["rig", "capture.npz", "-o", "x.npz", "--skeleton", "given"],
        ["pose", "capture.npz", "--frames", "0:2", "-o", "x.npz"],
        ["pose", "rig.npz", "--frames", "90:99", "-o", "x.npz"],
        ["pose", "rig.npz", "--motion", "capture.npz", "-o", "x.npz"],
        ["bake", "rig.npz", "--cloud", "missing.ply", "--motion", "capture.npz", "-o", "x"],
    ],
)
def test_errors_are_one_sentence_on_stderr_and_code_1(rig, folder, monkeypatch, capsys, command):
    monkeypatch.chdir(folder)
    before = sorted(path.name for path in folder.iterdir())
    assert main(command) == 1
    out, err = capsys.readouterr()
    assert not out and len(err.strip().splitlines()) == 1 and "Traceback" not in err
    assert sorted(path.name for path in folder.iterdir()) == before


def test_damaged_files_are_quoted_in_short_and_harmlessly(rig, folder, tmp_path, capsys):
    whole = (folder / "rig.npz").read_bytes()
    with zipfile.ZipFile(folder / "rig.npz") as archive:
        first = archive.infolist()[0]
    # A long name that differs from that in the directory.
    at = whole.index(first.filename.encode())
    length = whole[at - 4 : at]
    (tmp_path / "rig.npz").write_bytes(whole[: at - 4] + b"\xff\x1f" + length[2:] + whole[at:])
    assert main(["pose", str(tmp_path / "rig.npz"), "--frames", ":", "-o", str(tmp_path / "x.npz")]) == 1
    assert "is damaged" in (error := capsys.readouterr().err) and len(error) < 300 + len(str(tmp_path))
    head = "ply\nformat binary_little_endian 1.0\nelement vertex 1\nproperty float \x1b[31mx\nend_header\n"
    (tmp_path / "red.ply").write_bytes(head.encode() + bytes(4))
    assert main(["info", str(tmp_path / "red.ply")]) == 1
    assert capsys.readouterr().err[:-1].isprintable()


@pytest.mark.parametrize(
    "name, command",
    [
        ("rig.npz", ["info", "bytes.npz"]),
        ("rig.npz", ["pose", "bytes.npz", "--frames", ":", "-o", "x.npz"]),
        ("capture.npz", ["rig", "bytes.npz", "-o", "x.npz"]),
        ("motion.npz", ["pose", "rig.npz", "--motion", "bytes.npz", "-o", "x.npz"]),
    ],
)
def test_arrays_that_lost_their_mark_are_damage(rig, folder, monkeypatch, capsys, name, command):
    monkeypatch.chdir(folder)
    with np.load("rig.npz") as made:
        np.savez("motion.npz", rotations=made["joint_rotations"], fps=24.0)
    with zipfile.ZipFile("bytes.npz", "w") as damaged, zipfile.ZipFile(name) as whole:
        for entry in whole.namelist():
            damaged.writestr(entry, whole.read(entry).replace(b"NUMPY", b"LUMPY"))
    assert main(command) == 1
    assert "damaged" in (error := capsys.readouterr().err) and "is no array" in error


@pytest.mark.parametrize(
    "command",
    [
        ["rig", "capture.npz", "-o", "capture.npz"],
        ["rig", "cap*.npz", "-o", "./capture.npz"],
        ["pose", "rig.npz", "--frames", ":", "-o", "rig.npz"],
        ["pose", "rig.npz", "--motion", "capture.npz", "-o", "capture.npz"],
    ],
)
def test_nothing_that_is_read_is_written_over(rig, folder, monkeypatch, capsys, command):
    monkeypatch.chdir(folder)
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    assert main(command) == 1
    assert "give the output another name" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


@pytest.mark.parametrize(
    "command",
    [
        [],
        ["dance"],
        ["rig", "a.npz"],
        ["rig", "a.npz", "-o", "x.npz", "--skeleton", "mine"],
        ["pose", "rig.npz", "-o", "x.npz"],
        ["pose", "rig.npz", "--frames", "3", "-o", "x.npz"],
        ["pose", "rig.npz", "--frames", "3:", "-o", ""],
        ["rig", "", "-o", "x.npz"],
        ["refine", "rig.npz", "capture.npz", "more.npz", "", "-o", "x.npz"],
        ["bake", "rig.npz", "--cloud", "", "--motion", "m.npz", "-o", "x"],
        ["pose", "rig.npz", "--frames=-10:", "-o", "x.npz"],
        ["pose", "rig.npz", "--frames", "0:2", "--motion", "m.npz", "-o", "x.npz"],
    ],
)
def test_wrong_usage_is_code_2(command, capsys):
    with pytest.raises(SystemExit) as stop:
        main(command)
    assert stop.value.code == 2
