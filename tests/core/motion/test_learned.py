"""What a rig has learned travels as bytes, and gives the rig back."""

import functools
import io
from dataclasses import fields, replace

import numpy as np
import pytest

from gaussianimate.core.errors import RigError
from gaussianimate.core.motion.auto import AutoLive
from gaussianimate.core.motion.database import MotionDatabase
from gaussianimate.core.motion.learned import LearnedMotion, learn_motion, rig_of


def joined(puppet, limbs):
    """The rig of a capture of one clip a limb."""
    motions = [puppet.clip(limb, phase=number) for number, limb in enumerate(limbs)]
    return puppet.rig(*(np.concatenate(rows) for rows in zip(*motions, strict=True)))


@functools.cache
def six_clips(puppet):
    """The puppet's rig with clips enough for a kernel, and what it learns."""
    whole = joined(puppet, puppet.LIMBS * 2)
    rig = replace(whole, clips=np.repeat(np.arange(6), whole.frame_count // 6))
    return rig, learn_motion(rig)


@pytest.fixture(scope="module")
def rig(puppet):
    """The puppet's rig, a frame in the middle of its second clip missing, clips of any numbers."""
    whole = joined(puppet, puppet.LIMBS)
    clips = 7 - 2 * np.repeat(np.arange(3), len(whole.frames) // 3)
    keep = np.arange(len(whole.frames)) != len(whole.frames) // 2
    rows = ("bone_transforms", "joint_rotations", "root_translations", "frames")
    few = {name: getattr(whole, name)[keep] for name in rows}
    return replace(whole, **few, clips=clips[keep], up=np.array([0, 0, 1.0]))


def test_round_trip(rig):
    motion = learn_motion(rig)
    again = LearnedMotion.from_bytes(motion.to_bytes())
    for field in fields(MotionDatabase):
        one, other = (getattr(m.predictor.database, field.name) for m in (motion, again))
        assert len(one) == len(other) if field.name == "parts" else np.array_equal(one, other)
    assert again.joint_names == motion.joint_names and again.canonical_frame == motion.canonical_frame
    assert np.array_equal(again.frames, motion.frames)


def test_kernel_and_corrections_travel(puppet):
    _, motion = six_clips(puppet)
    assert motion.predictor.kernel is not None
    again = LearnedMotion.from_bytes(motion.to_bytes())
    database = motion.predictor.database
    poses = database.rotations[:20].astype(float), database.root_translations[:20]
    one, other = (m.predictor.predict(*poses) for m in (motion, again))
    assert np.array_equal(one.rotations, other.rotations) and np.array_equal(one.offsets, other.offsets)


def test_the_rig_comes_back(rig):
    again = rig_of(learn_motion(rig), rig.rest, rig.indices, rig.weights)
    assert np.array_equal(again.frames, rig.frames) and again.joint_names == rig.joint_names
    size = np.linalg.norm(np.ptp(rig.rest, axis=0))
    assert np.abs(again.bone_transforms - rig.bone_transforms).max() < 1e-5 * size
    dots = np.abs((again.joint_rotations * rig.joint_rotations).sum(axis=-1))
    assert dots.min() > 1 - 1e-6
    clips = [np.unique(each.clips, return_inverse=True)[1] for each in (rig, again)]
    assert np.array_equal(*clips) and np.array_equal(again.up, rig.up)


def test_damage_is_one_sentence(rig):
    packed = learn_motion(rig).to_bytes()
    with pytest.raises(RigError, match="damaged"):
        LearnedMotion.from_bytes(packed[: len(packed) // 2])
    with pytest.raises(RigError, match="61 bones and the learned motion has 11"):
        rig_of(LearnedMotion.from_bytes(packed), rig.rest, rig.indices + 50, rig.weights)


def test_damaged_bytes_are_said_in_one_sentence(puppet):
    packed = six_clips(puppet)[1].to_bytes()
    rng, said = np.random.default_rng(0), set()
    for trial in range(200):
        damaged = bytearray(packed)
        for place in rng.integers(-4000 if trial % 2 else -len(packed), 0, 5):  # the end says where all lies
            damaged[place] ^= 1 << rng.integers(8)
        try:
            LearnedMotion.from_bytes(bytes(damaged))  # bits that mean nothing may be any
        except RigError as error:
            said.add(str(error))
    assert len(said) > 5 and not any("\n" in each for each in said)


def _changes(array):
    """What a file of another origin may hold instead."""
    yield from (array[None], array.reshape(-1)[:0], np.full(array.shape, "x"), np.full_like(array, 0) - 5)
    if array.dtype.kind == "f":
        yield np.full_like(array, np.nan)
    elif array.dtype.kind == "i":
        yield np.full_like(array, 9999)


def test_arrays_that_do_not_fit_are_said_in_one_sentence(puppet):
    whole, motion = six_clips(puppet)
    with np.load(io.BytesIO(motion.to_bytes())) as archive:
        arrays = dict(archive)
    rotations, places = whole.joint_rotations[:8], whole.root_translations[:8]
    refused = 0
    for name, array in arrays.items():
        numbers = array.dtype.kind in "if"
        for change in _changes(array) if numbers else (array[None],):
            stream = io.BytesIO()
            np.savez(stream, **(arrays | {name: change}))
            try:
                read = LearnedMotion.from_bytes(stream.getvalue())
            except RigError as error:
                assert "\n" not in str(error)
                refused += 1
                continue
            given = AutoLive(read.predictor).history(rotations, places)
            assert np.isfinite(given.residuals.offsets).all(), name
    assert refused > 3 * len(arrays)


def test_another_version_is_named(rig):
    with np.load(io.BytesIO(learn_motion(rig).to_bytes())) as archive:
        arrays = dict(archive)
    stream = io.BytesIO()
    np.savez(stream, **(arrays | {"version": np.array(99)}))
    with pytest.raises(RigError, match="another version"):
        LearnedMotion.from_bytes(stream.getvalue())
