"""Methods on a capture whose answer is known, and what they may know."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from gaussianimate.core.errors import CaptureError, MissingDependencyError
from gaussianimate.core.evaluate.baselines import networks
from gaussianimate.core.evaluate.floor import fitted_bones
from gaussianimate.core.evaluate.measure import distances
from gaussianimate.core.evaluate.methods import METHODS, method_fits
from gaussianimate.core.evaluate.protocol import every_split, fold_splits
from gaussianimate.core.evaluate.run import evaluate_split
from gaussianimate.core.evaluate.subject import held_out_query, training, training_rig
from gaussianimate.core.progress import no_progress

NUMPY_ONLY = ("lbs", "bob", "knn", "ridge", "fullmm", "match", "kernel", "auto")


@pytest.fixture(scope="module")
def report(capture, split, rig):
    return evaluate_split(capture, split, rig, method_fits(NUMPY_ONLY))


@pytest.fixture(scope="module")
def answers(learned, capture, split):
    """Transforms of every method in the held-out clips."""
    query, _ = held_out_query(capture, split, learned)
    return {name: METHODS[name](learned, no_progress).transforms(query) for name in NUMPY_ONLY}


def test_every_method_that_learns_beats_those_that_cannot(report):
    errors = {name: one.rmse_percent_diagonal for name, one in report.methods.items()}
    assert report.floor.rmse_percent_diagonal < 0.1
    assert errors["bob"] > 1 and errors["lbs"] > 0.5
    for name in ("knn", "ridge", "match", "kernel", "auto"):
        assert errors[name] < 0.5 * errors["bob"], (name, errors)
    assert all(report.floor.rmse <= one.rmse for one in report.methods.values())
    assert all(one.p95 >= one.rmse and one.memory_mb > 0 for one in report.methods.values())


def test_a_rigid_capture_is_replayed_by_the_skeleton_alone(swinging, options):
    capture = swinging.capture(clips=5, sway=0.0)
    split = fold_splits(capture, 1)[0]
    rig = training_rig(capture, split, options).rig
    report = evaluate_split(capture, split, rig, method_fits(("lbs", "bob")))
    assert max(one.rmse_percent_diagonal for one in report.methods.values()) < 0.01


@pytest.mark.parametrize("recurrent", [False, True])
@pytest.mark.parametrize("motion", [False, True])
def test_networks_learn_the_law(rig, capture, split, recurrent, motion):
    fits = method_fits(("bob",)) | {"net": small_network(recurrent, motion)}
    report = evaluate_split(capture, split, rig, fits)
    assert report.methods["net"].rmse < 0.5 * report.methods["bob"].rmse
    assert "net: 48 units, " in report.notes[-1]


def small_network(recurrent, motion):
    recipe = networks.Recipe(
        widths=(48,), batch=2 if recurrent else 16, epochs=40, patience=40, rate=1e-2, dropout=0.0
    )
    return lambda learned, progress: networks.fit_network(learned, recurrent, motion, recipe=recipe)


def test_a_network_out_of_time_says_so(learned):
    assert "1 epochs, stopped after" in networks.fit_network(learned, False, False, seconds=1e-6).note


def test_without_torch_the_way_out_is_named(learned, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependencyError, match="leave mlp and gru out"):
        METHODS["mlp"](learned, no_progress)


@pytest.mark.parametrize("value", [np.nan, 1e3])
def test_held_out_frames_are_never_seen(capture, split, options, learned, answers, value):
    positions, mats = capture.positions.copy(), capture.skeleton.joint_mats.copy()
    positions[split.test] = value
    mats[split.test] = value
    poisoned = replace(capture, positions=positions, skeleton=replace(capture.skeleton, joint_mats=mats))
    again = training(poisoned, split, training_rig(poisoned, split, options).rig)
    query, _ = held_out_query(capture, split, learned)
    for name in NUMPY_ONLY:
        assert (METHODS[name](again, no_progress).transforms(query) == answers[name]).all(), name


def test_networks_are_deterministic_and_do_not_see_held_out_frames(capture, split, options, learned):
    positions = capture.positions.copy()
    positions[split.test] = np.nan
    poisoned = replace(capture, positions=positions)
    again = training(poisoned, split, training_rig(poisoned, split, options).rig)
    query, _ = held_out_query(capture, split, learned)
    fit = small_network(recurrent=True, motion=True)
    first, second = (fit(one, no_progress).transforms(query) for one in (learned, again))
    assert (first == second).all()


def test_frames_held_out_inside_a_clip_leave_time_steady(capture, options):
    split = every_split(capture, 5)
    learned = training(capture, split, training_rig(capture, split, options).rig)
    assert len(learned.rows) == len(split.train)
    assert learned.database.frame_count > len(learned.rows)
    assert (np.bincount(learned.database.clips) >= 11).all()  # gaps inside clips are filled
    query, rows = held_out_query(capture, split, learned)
    assert len(query) == capture.frame_count and (rows == split.test).all()


def test_distances_of_a_shift_are_its_length(learned):
    rig = learned.rig
    still = np.broadcast_to(np.eye(3, 4), (2, rig.bone_count, 3, 4))
    truth = np.stack([rig.rest, rig.rest]) + np.array([0.03, 0, 0.04], np.float32)
    rmse, p95 = distances(rig.rest, rig.indices, rig.weights, still, truth)
    assert rmse == pytest.approx(0.05, rel=1e-4) and p95 == pytest.approx(0.05, rel=1e-3)


def test_floor_finds_the_bones_again(learned):
    rig = learned.rig
    rows = np.arange(10, 20)
    still = np.broadcast_to(np.eye(3, 4), (len(rows), rig.bone_count, 3, 4)).copy()
    found = fitted_bones(rig, learned.positions[rows], still)
    rmse, _ = distances(rig.rest, rig.indices, rig.weights, found, learned.positions[rows])
    best, _ = distances(
        rig.rest, rig.indices, rig.weights, rig.bone_transforms[rows], learned.positions[rows]
    )
    assert rmse < 1.05 * best + 1e-4


def test_unknown_and_repeated_methods_are_named():
    with pytest.raises(CaptureError, match="no method called 'svm'"):
        method_fits(("lbs", "svm"))
    with pytest.raises(CaptureError, match="lbs is asked for twice"):
        method_fits(("lbs", "lbs"))
    assert method_fits(("partmm",), "match")["partmm"] is METHODS["match"]
