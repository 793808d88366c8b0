"""What is learned about keys: the left-out error, its gradient, and how far few clips may lead."""

import numpy as np
import pytest

from gaussianimate.core.motion.relevance import (
    LEARNING_RATE,
    STEPS,
    HeldOutError,
    Relevance,
    fit_relevance,
    steps_for,
)


def _problem(rows=24, seed=3):
    random = np.random.default_rng(seed)
    groups = np.repeat(np.arange(4), [3, 2, 3, 2])
    keys = random.normal(size=(rows, 10)).astype(np.float32)
    targets = np.stack([np.sin(keys[:, 0]) + keys[:, 5], keys[:, 3] * keys[:, 1]], axis=1).astype(float)
    blocks = np.array_split(np.arange(rows), 4)
    return HeldOutError(keys, targets, blocks, groups, np.array([0, 1, 0, 2]), np.array([0, 0, 1, 2]))


def test_the_closed_error_is_that_of_leaving_each_clip_out():
    problem = _problem()
    relevance = Relevance.start(3, 3)
    shape, scale, noise = np.exp(relevance.numbers)
    w, v = np.exp(-1.2), np.exp(-2.2)
    x = problem.keys.astype(float)
    squared = ((x[:, None] - x) ** 2).sum(axis=-1) * w**2
    gram = scale * (1 + squared / (2 * shape)) ** -shape + v**2 * x @ x.T
    total = 0.0
    for block in problem.blocks:
        rest = np.setdiff1d(np.arange(len(x)), block)
        known = gram[np.ix_(rest, rest)] + (noise + 2e-3) * np.eye(len(rest))
        guess = gram[np.ix_(block, rest)] @ np.linalg.solve(known, problem.targets[rest])
        total += ((guess - problem.targets[block]) ** 2).sum()
    assert problem(relevance)[0] == pytest.approx(total / (problem.targets**2).sum(), rel=1e-4)


def test_the_gradient_is_that_of_the_error():
    problem = _problem()
    start = Relevance.start(3, 3)
    flat = start.flat() + 0.2 * np.random.default_rng(5).normal(size=len(start.flat()))
    gradient = problem(start.shaped(flat))[1]
    for entry in range(len(flat)):
        step = np.zeros(len(flat))
        step[entry] = 0.02
        slope = (problem(start.shaped(flat + step))[0] - problem(start.shaped(flat - step))[0]) / 0.04
        assert gradient[entry] == pytest.approx(slope, rel=2e-2, abs=2e-4)


def test_without_steps_only_what_all_share_is_fitted():
    problem, start = _problem(), Relevance.start(3, 3)
    common, error = fit_relevance(problem, start, steps=0)
    assert not common.channels.any()
    assert np.ptp(common.kinds) == np.ptp(common.linear) == 0
    assert common.kinds[0] != start.kinds[0] and (common.numbers != start.numbers).all()
    assert error == problem(common)[0] < problem(start)[0]


def test_steps_let_single_relevances_go_their_own_ways():
    problem, start = _problem(), Relevance.start(3, 3)
    errors = []
    for steps in (0, 3, 12):
        found, error = fit_relevance(problem, start, steps)
        common, _ = fit_relevance(problem, start, 0)
        strayed = np.abs(found.flat() - common.flat())[:-3].max()
        assert (strayed > 0) == (steps > 0) and strayed < 1.3 * LEARNING_RATE * steps + 1e-9
        errors.append(error)
    assert errors[0] > errors[1] > errors[2]


def test_few_clips_allow_few_steps():
    counts = [steps_for(clips) for clips in range(1, 100)]
    assert counts[0] == 1 and counts[11] == 8 and counts[-1] == STEPS
    assert (np.diff(counts) >= 0).all()


def test_progress_rises_to_the_end():
    told = []
    fit_relevance(_problem(), Relevance.start(3, 3), 4, lambda stage, share: told.append(share))
    assert told[0] == 0 and told[-1] == 1 and (np.diff(told) >= 0).all()
