"""Training: interrupted and taken up again it comes to the same end."""

import numpy as np
import pytest
import torch

from gaussianimate.core.errors import Cancelled, RigError
from gaussianimate.core.resample import trainer
from gaussianimate.core.resample.alignment import align, distances
from gaussianimate.core.resample.dictionary import load_dictionary
from gaussianimate.core.resample.grid import OPACITIES, PAIRS, problems
from gaussianimate.core.resample.training_state import TrainingSettings

QUICK = TrainingSettings(iterations=2, rays=32)


@pytest.fixture(autouse=True)
def few_rays(monkeypatch):
    """All 780 problems, but measured by few rays."""
    monkeypatch.setattr(trainer, "CHECK_RAYS", 64)
    monkeypatch.setattr(trainer, "MEASURE_RAYS", 64)
    monkeypatch.setattr(trainer, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(trainer.check_rays, "__defaults__", (64,))


def test_an_interrupted_training_ends_as_one_in_one_go(tmp_path):
    whole = trainer.train_dictionary(tmp_path / "whole.npz", QUICK)
    parts, runs = tmp_path / "parts.npz", 0
    fractions = []
    while not parts.exists():
        calls = 0

        def stop_after_a_while(stage, fraction):
            nonlocal calls
            calls += 1
            fractions.append(fraction)
            if calls > 45:
                raise Cancelled("no")

        runs += 1
        try:
            trainer.train_dictionary(parts, QUICK, stop_after_a_while)
        except Cancelled:
            assert (tmp_path / "parts.npz.partial.npz").exists() and not parts.exists()
    assert runs > 2 and (np.diff(fractions) >= 0).all() and fractions[0] == 0
    assert (
        load_dictionary(parts).checksum == load_dictionary(tmp_path / "whole.npz").checksum == whole.checksum
    )
    assert not (tmp_path / "parts.npz.partial.npz").exists()


def test_a_begun_training_keeps_its_settings(tmp_path):
    def stop(stage, fraction):
        if fraction > 0:
            raise Cancelled("no")

    with pytest.raises(Cancelled):
        trainer.train_dictionary(tmp_path / "d.npz", QUICK, stop)
    with pytest.raises(RigError, match="other settings"):
        trainer.train_dictionary(tmp_path / "d.npz", TrainingSettings(iterations=3, rays=32))
    with pytest.raises(RigError, match="at least 1"):
        trainer.train_dictionary(tmp_path / "e.npz", TrainingSettings(rays=0))


def test_training_lowers_the_loss_and_never_raises_it():
    axes, opacities = (torch.from_numpy(a[::97]).float() for a in problems())
    start = trainer.starting_children("cross", opacities)
    settings = TrainingSettings(iterations=80, rays=256)
    children, after = trainer.solve(start, axes, opacities, settings, seed=0)
    again, _ = trainer.solve(start, axes, opacities, settings, seed=0)
    rays = trainer.check_rays()
    before = trainer.splitting_loss(rays, start, axes, opacities, 0.002, True).numpy()
    assert (after < before).all() and (after / before).mean() < 0.8
    assert np.array_equal(children, again)
    stuck, losses = trainer.solve(
        torch.from_numpy(children), axes, opacities, TrainingSettings(iterations=1, learning_rate=5.0), seed=0
    )
    assert np.array_equal(stuck, children) and np.allclose(losses, after)


def test_neighbours_are_one_step_apart():
    table = trainer.neighbours()
    pair, opacity = np.divmod(table, len(OPACITIES))
    steps = np.abs(PAIRS[pair] - PAIRS[pair[:, :1]]).sum(axis=2) + np.abs(opacity - opacity[:, :1])
    assert (table[:, 0] == np.arange(780)).all() and steps.max() == 1
    inner = (PAIRS[pair[:, 0]][:, 0] > 0) & (PAIRS[pair[:, 0]][:, 1] > PAIRS[pair[:, 0]][:, 0] + 1)
    inner &= (PAIRS[pair[:, 0]][:, 1] < 11) & (opacity[:, 0] > 0) & (opacity[:, 0] < 9)
    assert inner.any() and (steps[inner].sum(axis=1) == 6).all()


def test_alignment_shows_the_same_picture_and_likens_neighbours(rng):
    """Children shuffled and mirrored at random come back alike."""
    children = load_dictionary().children.copy()
    shuffled = np.stack([each[rng.permutation(5)] for each in children])
    shuffled[..., :3] *= rng.choice([-1.0, 1.0], (780, 1, 3))
    found = align(shuffled)

    def sorted_shapes(entries):
        return np.sort(np.concatenate([np.abs(entries[..., :3]), entries[..., 3:]], axis=2), axis=1)

    assert np.allclose(sorted_shapes(found), sorted_shapes(children), atol=1e-6)
    before, after = (
        distances(each.reshape(78, 10, 5, 7)[:, 1:], each.reshape(78, 10, 5, 7)[:, :-1])
        for each in (shuffled, found)
    )
    assert np.median(after) < 0.2 * np.median(before)
