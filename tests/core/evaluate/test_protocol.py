"""Which frames are held out."""

from dataclasses import replace

import numpy as np
import pytest

from gaussianimate.core.errors import CaptureError
from gaussianimate.core.evaluate.protocol import clip_split, every_split, fold_splits, fraction_split


def test_folds_hold_out_different_whole_clips_in_the_stated_order(capture):
    splits = fold_splits(capture, 3)
    order = np.random.default_rng(42).permutation(np.arange(12))
    for fold, split in enumerate(splits):
        held_out = np.unique(capture.clips[split.test])
        assert set(held_out) == set(order[2 * fold : 2 * fold + 2])
        assert not np.isin(capture.clips[split.train], held_out).any()
        assert sorted([*split.train, *split.test]) == list(range(capture.frame_count))
    tests = np.concatenate([split.test for split in splits])
    assert len(np.unique(tests)) == len(tests)
    again = fold_splits(capture, 3)
    assert all((a.test == b.test).all() and a.name == b.name for a, b in zip(splits, again, strict=True))


def test_unusable_frames_are_neither_learned_from_nor_tested(capture):
    valid = capture.frame_valid.copy()
    valid[[0, 7, 50]] = False
    for split in (
        *fold_splits(replace(capture, frame_valid=valid), 2),
        every_split(replace(capture, frame_valid=valid), 5),
    ):
        assert not np.isin([0, 7, 50], np.concatenate([split.train, split.test])).any()


def test_every_nth_frame(capture):
    split = every_split(capture, 5)
    assert (split.test % 5 == 4).all() and len(split.test) == capture.frame_count // 5
    told = [every_split(capture, step).name.split()[1] for step in (2, 3, 4, 11, 12, 21, 112)]
    assert told == ["2nd", "3rd", "4th", "11th", "12th", "21st", "112th"]


def test_a_capture_of_one_motion_holds_out_its_end(capture):
    split = fraction_split(replace(capture, clips=None), 0.25)
    assert split.test.tolist() == list(range(108, 144)) and split.train.tolist() == list(range(108))


def test_clips_are_named_or_numbered(capture):
    split = clip_split(capture, ("swing3", "5"))
    assert np.unique(capture.clips[split.test]).tolist() == [3, 5]


@pytest.mark.parametrize(
    ("hold_out", "words"),
    [
        (lambda c: fold_splits(c, 7), "12 clips, too few for 7 folds of 2"),
        (lambda c: fold_splits(replace(c, clips=None), 3), "does not say which motions"),
        (lambda c: clip_split(c, ("walk",)), "no clip called 'walk'; it has 0, 1"),
        (lambda c: clip_split(c, tuple(map(str, range(12)))), "no frame to learn from"),
        (lambda c: every_split(c, 1), "not every 1"),
        (lambda c: every_split(c, 1000), "no frame to test on"),
        (lambda c: fraction_split(c, 1.0), "between 0 and 1"),
    ],
)
def test_what_cannot_be_held_out_is_said(capture, hold_out, words):
    with pytest.raises(CaptureError, match=words):
        hold_out(capture)
