"""``python -m gaussianimate evaluate``: what it prints and refuses."""

import json

import numpy as np
import pytest

from gaussianimate.core.cli import main


@pytest.fixture(scope="module")
def file(tmp_path_factory, swinging):
    capture = swinging.capture(clips=10, frames=8)
    path = tmp_path_factory.mktemp("evaluate") / "swinging.npz"
    skeleton = capture.skeleton
    np.savez(
        path,
        vertices=capture.positions,
        rest=3 * capture.positions[0],
        clip=capture.clips,
        clip_names=np.array(capture.clip_names),
        fps=24.0,
        joint_names=np.array(skeleton.names),
        joint_parents=skeleton.parents,
        joint_rest=skeleton.rest,
        joint_mats=skeleton.joint_mats,
    )
    return str(path)


def test_folds_as_one_object(file, swinging, capsys):
    command = ["evaluate", file, "--folds", "2", "--max-bones", "4", "--methods", "bob,partmm", "--json"]
    assert main(command) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["skeleton"] == "given" and list(found["methods"]) == ["bob", "partmm"]
    assert found["methods"]["partmm"]["mode"] == "auto"
    for one in (*found["methods"].values(), found["floor"]):
        folds = [fold["rmse_percent_diagonal"] for fold in one["folds"]]
        assert len(folds) == 2 and one["rmse_percent_diagonal"] == pytest.approx(np.mean(folds))
    assert {"rmse", "p95", "ms_per_frame", "build_seconds", "memory_mb"} <= set(found["methods"]["bob"])
    assert found["diagonal"] == pytest.approx(
        3 * np.linalg.norm(np.ptp(swinging.REST, axis=0)), rel=1e-5
    )  # of the rest pose in the file
    assert [split["test_frames"] for split in found["splits"]] == [16, 16]
    assert found["splits"][0]["split"] == "fold 1" and found["peak_memory_mb"] > 10


def test_table_of_found_joints_says_where_poses_come_from(file, capsys):
    command = ["evaluate", file, "--skeleton", "extracted", "--test-clips", "swing1,4"]
    assert main([*command, "--max-bones", "4", "--methods", "lbs,partmm", "--partmm", "match"]) == 0
    out = capsys.readouterr().out
    assert "fitted to the held-out frames" in out and "swing1, 4 held out" in out
    assert {line.split()[0] for line in out.splitlines() if line} >= {"lbs", "partmm", "(floor)"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--methods", "lbs,svm"], "no method called 'svm'"),
        (["--folds", "9"], "too few for 9 folds"),
        (["--test-clips", "walk"], "no clip called 'walk'"),
        (["--max-bones", "0"], "at least 1"),
        (["--test-fraction", "2"], "between 0 and 1"),
    ],
)
def test_errors_are_one_sentence(file, capsys, arguments, words):
    assert main(["evaluate", file, *arguments]) == 1
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert said.startswith("gaussianimate: ") and words in said


def test_a_capture_without_skeleton_is_refused_given_joints(tmp_path, capsys):
    np.savez(tmp_path / "bare.npz", vertices=np.random.default_rng(0).normal(size=(5, 20, 3)))
    assert main(["evaluate", str(tmp_path / "bare.npz"), "--skeleton", "given"]) == 1
    assert "brings no skeleton" in capsys.readouterr().err
