"""What methods are asked: whole clips on a steady clock."""

from dataclasses import replace

import numpy as np
import pytest

from gaussianimate.core.evaluate.protocol import every_split, fold_splits
from gaussianimate.core.evaluate.run import _held_out_frames
from gaussianimate.core.evaluate.subject import held_out_query
from gaussianimate.core.motion.kernel_fit import fit_kernel


@pytest.fixture(scope="module")
def broken(capture, split):
    """The capture without two frames of a held-out clip, one of its neighbour, and its split."""
    start = int(split.test[0])
    valid = capture.frame_valid.copy()
    valid[[start + 4, start + 7, start + 8]] = False
    torn = replace(capture, frame_valid=valid)
    return torn, fold_splits(torn, 1)[0]


def test_a_query_holds_whole_clips_and_names_the_held_out_rows(capture, learned):
    single = every_split(capture, 5)
    query, rows = held_out_query(capture, single, learned)
    assert len(query) == capture.frame_count and rows.tolist() == single.test.tolist()
    assert (query.clips == capture.clips).all()


def test_missing_frames_leave_their_time(capture, split, learned, broken):
    query, _ = held_out_query(capture, split, learned)
    torn, torn_rows = held_out_query(*broken, learned)
    assert len(torn) == len(query) and (torn.clips == query.clips).all()
    assert len(torn_rows) == len(split.test) - 3
    frames = _held_out_frames(*broken)
    same = np.searchsorted(split.test, frames)  # the fold's clips come in the capture's order
    assert torn_rows.tolist() == same.tolist()
    np.testing.assert_array_equal(torn.rotations[torn_rows], query.rotations[same])
    np.testing.assert_allclose(torn.rotations, query.rotations, atol=5e-3)  # interpolated
    np.testing.assert_allclose(torn.root_translations, query.root_translations, atol=5e-3)


def test_answers_beside_a_gap_are_those_without_one(capture, split, learned, broken):
    kernel = fit_kernel(learned.database, steps=2)
    query, rows = held_out_query(capture, split, learned)
    torn, torn_rows = held_out_query(*broken, learned)
    whole, beside = (
        kernel.predict(q.rotations, q.root_translations, q.fps, q.clips).offsets for q in (query, torn)
    )
    closed_up = np.delete(np.arange(len(query)), np.setdiff1d(rows, torn_rows))  # as if no time had passed
    naive = kernel.predict(
        query.rotations[closed_up], query.root_translations[closed_up], query.fps, query.clips[closed_up]
    ).offsets
    stray = np.abs(beside[torn_rows] - whole[torn_rows]).max()
    assert stray < 0.2 * np.abs(naive - whole[torn_rows]).max()


def test_a_long_gap_splits_the_clip(capture, split, learned):
    start = int(split.test[0])
    valid = capture.frame_valid.copy()
    valid[start + 3 : start + 9] = False
    torn = replace(capture, frame_valid=valid)
    query, rows = held_out_query(torn, fold_splits(torn, 1)[0], learned)
    assert len(query) == len(split.test) - 6 == len(rows)
    assert (query.clips[:3] == 0).all() and (query.clips[3:6] == 1).all()
