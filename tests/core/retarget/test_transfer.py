"""The motion of one skeleton on another."""

from dataclasses import replace

import numpy as np
import pytest
from public_rigs import PARTS, Y_UP, by_part, indices, motions, posed_as_rest, upright

from gaussianimate.core.errors import RigError
from gaussianimate.core.retarget.alignment import BonePairs, align_axes, minimal_rotation
from gaussianimate.core.retarget.skeleton import RestSkeleton
from gaussianimate.core.retarget.suggest import suggest_bone_map
from gaussianimate.core.retarget.transfer import RetargetOptions, retarget_motion
from gaussianimate.core.rigging.kabsch import kabsch
from gaussianimate.core.rotations import (
    affine_inverse,
    affine_multiply,
    axis_angle_to_quaternion,
    quaternion_to_matrix,
)

ALL_RIGS = ("human", "knight", "robot", "cesium", "fox")


def turns_of(mats):
    return kabsch(np.swapaxes(mats[..., :3], -1, -2))


def heads_of(skeleton, mats):
    return np.einsum("fjab,jb->fja", mats[..., :3], skeleton.heads) + mats[..., 3]


def turn_by(axis, degrees):
    return quaternion_to_matrix(axis_angle_to_quaternion(np.array(axis, float), np.radians(degrees)))


def moved(skeleton, mats, turn, scale=1.0, shift=(0, 0, 0)):
    """The same armature in other axes and units, still standing in the same scene."""
    move = np.column_stack([scale * turn, shift])
    heads = skeleton.heads @ move[:, :3].T + move[:, 3]
    tails = skeleton.tails @ move[:, :3].T + move[:, 3]
    other = replace(skeleton, heads=heads, tails=tails, world=skeleton.world @ turn.T)
    return other, affine_multiply(affine_multiply(move, mats), affine_inverse(move))


def rotation_angles(matrices):
    skew = matrices - np.swapaxes(matrices, -1, -2)
    sine = np.sqrt(skew[..., 0, 1] ** 2 + skew[..., 0, 2] ** 2 + skew[..., 1, 2] ** 2)
    return np.arctan2(sine, np.trace(matrices, axis1=-2, axis2=-1) - 1)


def largest_angle(a, b):
    return rotation_angles(np.swapaxes(a, -1, -2) @ b).max()


@pytest.mark.parametrize("rig", ALL_RIGS)
def test_a_copy_of_itself_gets_the_same_motion(rig):
    skeleton, mats = motions(rig)
    out = retarget_motion(skeleton, skeleton, mats, np.arange(len(skeleton)))
    assert largest_angle(out.motions[..., :3], turns_of(mats)) < 1e-6
    assert out.scale == pytest.approx(1) and np.allclose(out.turn, np.eye(3), atol=1e-9)


def test_a_copy_of_itself_goes_where_it_goes():
    skeleton, mats = motions("human")  # whose joints turn and never slide
    out = retarget_motion(skeleton, skeleton, mats, np.arange(len(skeleton)))
    np.testing.assert_allclose(heads_of(skeleton, out.motions), heads_of(skeleton, mats), atol=1e-5)


@pytest.mark.parametrize("target, source", [("human", "knight"), ("cesium", "human"), ("knight", "human")])
def test_nothing_changes_where_the_source_stands_lies_or_how_large_it_is(target, source):
    mine = posed_as_rest(target)[0]
    theirs, mats = motions(source)
    bone_map = by_part(target, source, mine, theirs)
    expected = retarget_motion(mine, theirs, mats, bone_map)
    other, other_mats = moved(theirs, mats, turn_by((0.3, 1, -0.2), 130), 100.0, (3, 2, 1))
    got = retarget_motion(mine, other, other_mats, bone_map)
    assert got.scale == pytest.approx(expected.scale / 100)
    np.testing.assert_allclose(got.motions, expected.motions, atol=1e-6)


def test_a_source_in_other_axes_is_laid_on_the_target():
    """Axes a quarter turn apart are found exactly, though the two are built differently."""
    mine, theirs = upright("human"), upright("knight")
    bone_map = by_part("human", "knight", mine, theirs)
    for axis, angle in (((0, 1, 0), 90), ((1, 0, 0), -90), ((0, 1, 0), 180)):
        other, _ = moved(theirs, motions("knight")[1], turn_by(axis, angle))
        found = align_axes(mine, other, BonePairs.make(mine, bone_map))
        np.testing.assert_allclose(found, turn_by(axis, angle).T, atol=1e-9)


LIMBS = [
    (f"{a}.{side}", f"{b}.{side}")
    for a, b in (("upperarm", "forearm"), ("forearm", "hand"), ("thigh", "shin"), ("shin", "foot"))
    for side in "LR"
]


@pytest.mark.parametrize("target", ["human", "cesium", "knight"])
@pytest.mark.parametrize("source", ["human", "knight"])
def test_limbs_point_as_the_sources_do(target, source):
    """A-pose, T-pose and a stride as rest poses: mapped limbs agree within a degree in every frame."""
    mine, (theirs, mats) = posed_as_rest(target)[0], motions(source)
    out = retarget_motion(mine, theirs, mats, by_part(target, source, mine, theirs))
    a, b = heads_of(mine, out.motions), heads_of(theirs, mats) @ out.turn.T
    for above, below in LIMBS:
        ways = []
        for skeleton, heads, rig in ((mine, a, target), (theirs, b, source)):
            i, j = (skeleton.names.index(PARTS[rig][part]) for part in (above, below))
            ways.append(
                (heads[:, j] - heads[:, i]) / np.linalg.norm(heads[:, j] - heads[:, i], axis=1)[:, None]
            )
        apart = np.degrees(np.arccos(np.clip((ways[0] * ways[1]).sum(axis=1), -1, 1)))
        assert apart.max() < 1, (above, below)


def test_without_alignment_bones_turn_from_their_own_rest_pose():
    mine, (theirs, mats) = posed_as_rest("cesium")[0], motions("human")
    bone_map = by_part("cesium", "human", mine, theirs)
    out = retarget_motion(mine, theirs, mats, bone_map, RetargetOptions(align_rest=False))
    direct = bone_map >= 0
    direct[mine.names.index(PARTS["cesium"]["spine"])] = False  # also bends where the man's spine does beyond
    expected = out.turn @ turns_of(mats)[:, bone_map[direct]] @ out.turn.T
    assert largest_angle(out.motions[:, direct, :, :3], expected) < 1e-6


@pytest.mark.parametrize("target", ["human", "cesium", "knight"])
@pytest.mark.parametrize("source", ["human", "knight"])
def test_feet_stand_on_the_ground(target, source):
    """The lowest mapped joint is as high as the source's lowest; no ankle sinks by 3 % of the height."""
    mine, (theirs, mats) = posed_as_rest(target)[0], motions(source)
    bone_map = by_part(target, source, mine, theirs)
    out = retarget_motion(mine, theirs, mats, bone_map)
    mapped = bone_map >= 0
    heights = (heads_of(mine, out.motions) @ mine.up)[:, mapped]
    rest = mine.heads @ mine.up
    source_up = out.turn.T @ mine.up
    wanted = (heads_of(theirs, mats) @ source_up)[:, bone_map[mapped]].min(axis=1)
    ground = (theirs.heads @ source_up)[bone_map[mapped]].min()
    lifted = heights.min(axis=1) - rest[mapped].min()
    np.testing.assert_allclose(lifted, out.scale * (wanted - ground), atol=1e-9)
    assert heights.min() - rest[mapped].min() > -0.03 * np.ptp(rest)


@pytest.mark.parametrize("source", ["human", "knight"])
def test_a_source_that_rests_off_its_ground_is_stood_on_the_targets(source):
    """As BVH files do, whose hips rest at the origin while the motion stands on the ground."""
    mine, (theirs, mats) = upright("cesium"), motions(source)
    bone_map = by_part("cesium", source, mine, theirs)
    expected = retarget_motion(mine, theirs, mats, bone_map).motions
    sunk = 0.6 * np.ptp(theirs.heads @ theirs.up) * theirs.up
    lifted = mats.copy()
    lifted[..., 3] += (mats[..., :3] @ sunk)[..., :]
    resting = replace(theirs, heads=theirs.heads - sunk, tails=theirs.tails - sunk)
    found = retarget_motion(mine, resting, lifted, bone_map).motions
    low = (heads_of(mine, found) @ mine.up)[:, bone_map >= 0].min(axis=1)
    wanted = (heads_of(mine, expected) @ mine.up)[:, bone_map >= 0].min(axis=1)
    assert np.abs(low - wanted).max() < 0.06 * np.ptp(mine.heads @ mine.up)
    np.testing.assert_allclose(found[..., :3], expected[..., :3], atol=1e-9)


def test_steps_are_as_long_as_the_legs():
    mine, (theirs, mats) = upright("knight"), motions("human")
    bone_map = by_part("knight", "human", mine, theirs)
    out = retarget_motion(mine, theirs, mats, bone_map)
    legs = [
        s.heads[s.names.index(n), 1] - s.heads[:, 1].min() for s, n in ((mine, "hips"), (theirs, "pelvis"))
    ]
    low = [s.heads[s.names.index(n), 1] for s, n in ((mine, "toes.l"), (theirs, "ball_l"))]
    assert out.scale == pytest.approx(
        (legs[0] - low[0] + mine.heads[:, 1].min()) / (legs[1] - low[1] + theirs.heads[:, 1].min())
    )
    hips, pelvis = mine.names.index("hips"), theirs.names.index("pelvis")
    went = heads_of(mine, out.motions)[:, hips] - mine.heads[hips]
    source_went = heads_of(theirs, mats)[:, pelvis] - theirs.heads[pelvis]
    level = [0, 2]
    assert np.ptp(source_went[:, level], axis=0).max() > 0.1
    np.testing.assert_allclose(went[:, level], out.scale * source_went[:, level], atol=1e-9)
    unscaled = retarget_motion(mine, theirs, mats, bone_map, RetargetOptions(scale_root=False, unit=0.5))
    went = heads_of(mine, unscaled.motions)[:, hips] - mine.heads[hips]
    np.testing.assert_allclose(went[:, level], 0.5 * source_went[:, level], atol=1e-9)


def test_in_place_keeps_height_and_turns_only():
    mine, (theirs, mats) = upright("knight"), motions("human")
    bone_map = by_part("knight", "human", mine, theirs)
    free = retarget_motion(mine, theirs, mats, bone_map).motions
    still = retarget_motion(mine, theirs, mats, bone_map, RetargetOptions(in_place=True)).motions
    hips = mine.names.index("hips")
    went, stays = (heads_of(mine, each)[:, hips] for each in (free, still))
    np.testing.assert_allclose(stays[:, [0, 2]], np.tile(mine.heads[hips, [0, 2]], (len(mats), 1)), atol=1e-9)
    np.testing.assert_allclose(stays[:, 1], went[:, 1], atol=1e-9)
    np.testing.assert_allclose(still[..., :3], free[..., :3], atol=1e-9)


def chain(heads, names=None):
    heads = np.array(heads, float)
    return RestSkeleton.make(names or [f"b{i}" for i in range(len(heads))], np.arange(len(heads)) - 1, heads)


def bend(skeleton, angles, axis=(0, 1, 0)):
    """Motions (F, B, 3, 4) of a chain whose joints turn by angles (F, B)."""
    out = np.zeros((len(angles), len(skeleton), 3, 4))
    for f, row in enumerate(angles):
        above = np.eye(4)
        for b, angle in enumerate(row):
            local = np.eye(4)
            local[:3, :3] = turn_by(axis, np.degrees(angle))
            local[:3, 3] = skeleton.heads[b] - local[:3, :3] @ skeleton.heads[b]
            above = above @ local
            out[f, b] = above[:3]
    return out


def test_bones_in_between_that_are_not_mapped_are_composed_in():
    source = chain([[0, 0, 0], [0, 0, 1], [0, 0, 2], [0, 0, 3]])
    target = chain([[0, 0, 0], [0, 0, 3]])
    mats = bend(source, [[0, 0, 0, 0], [0.1, 0.4, 0.3, 0.2]])
    out = retarget_motion(target, source, mats, np.array([0, 3]))
    assert largest_angle(out.motions[:, 1, :, :3], turns_of(mats)[:, 3]) < 1e-9  # 1.0 rad in all
    way = heads_of(target, out.motions)[1]
    actual = heads_of(source, mats)[1, 3] - heads_of(source, mats)[1, 0]
    np.testing.assert_allclose((way[1] - way[0]) / 3, actual / np.linalg.norm(actual), atol=1e-9)


def test_target_bones_that_are_not_mapped_follow_their_parent():
    source = chain([[0, 0, 0], [0, 0, 1]])
    target = chain([[0, 0, 0], [0, 0, 1], [0, 0, 2], [0, 0, 3]])
    mats = bend(source, [[0.5, 0.4]])
    out = retarget_motion(target, source, mats, np.array([0, -1, 1, -1])).motions
    np.testing.assert_allclose(out[:, 3, :, :3], out[:, 2, :, :3], atol=1e-12)
    np.testing.assert_allclose(out[:, 1], out[:, 0], atol=1e-12)
    assert largest_angle(out[:, 2, :, :3], turns_of(mats)[:, 1]) < 1e-9


def test_scale_in_the_source_is_left_out():
    mine, (theirs, mats) = upright("human"), motions("human")
    stretched = mats.copy()
    stretched[..., :3] *= 1.3
    stretched[..., 3] -= np.einsum("fjab,jb->fja", stretched[..., :3] - mats[..., :3], theirs.heads)
    out = retarget_motion(mine, theirs, stretched, np.arange(len(mine)))
    np.testing.assert_allclose(np.linalg.det(out.motions[..., :3]), 1, atol=1e-9)
    assert largest_angle(out.motions[..., :3], turns_of(mats)) < 1e-6


def test_suggested_maps_carry_motion_between_all_rigs():
    for a, b in (("human", "cesium"), ("cesium", "knight"), ("robot", "human"), ("fox", "human")):
        mine, (theirs, mats) = posed_as_rest(a)[0], motions(b)
        bone_map = np.array([each.source for each in suggest_bone_map(mine, theirs)])
        out = retarget_motion(mine, theirs, mats, bone_map).motions
        assert out.shape == (len(mats), len(mine), 3, 4) and np.isfinite(out).all()
        np.testing.assert_allclose(
            out[..., :3] @ np.swapaxes(out[..., :3], -1, -2), np.eye(3) + 0 * out[..., :3], atol=1e-9
        )


def test_nothing_mapped_is_said():
    mine, (theirs, mats) = upright("human"), motions("human")
    with pytest.raises(RigError, match="No bone is mapped"):
        retarget_motion(mine, theirs, mats, np.full(len(mine), -1))


def test_one_bone_or_bones_on_a_line_are_enough():
    """What the bones leave open is taken from how both stand in the scene."""
    mine, (theirs, mats) = upright("human"), motions("knight")
    for parts in (["hips"], ["hips", "spine", "chest"]):
        bone_map = indices({PARTS["human"][p]: PARTS["knight"][p] for p in parts}, mine, theirs)
        other, other_mats = moved(theirs, mats, turn_by((1, 0, 0), 90))
        out = retarget_motion(mine, other, other_mats, bone_map)
        np.testing.assert_allclose(out.turn, turn_by((1, 0, 0), -90), atol=1e-9)
        assert np.isfinite(out.motions).all() and out.scale > 0


def test_skeletons_out_of_order_or_shape_are_refused():
    with pytest.raises(RigError, match="before its parent"):
        RestSkeleton.make(["a", "b"], [1, -1], np.zeros((2, 3)))
    with pytest.raises(RigError, match="do not agree"):
        RestSkeleton.make(["a", "b"], [-1, 0], np.full((2, 3), np.nan))


def test_smallest_turns_also_where_directions_are_opposite():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 50, 3))
    b[0], b[1] = -a[0], 2 * a[1]
    a[2], b[2] = [0, 0, 1], [0, 0, -1]
    turns = minimal_rotation(a, b)
    unit = [v / np.linalg.norm(v, axis=1, keepdims=True) for v in (a, b)]
    np.testing.assert_allclose(np.einsum("nij,nj->ni", turns, unit[0]), unit[1], atol=1e-9)
    np.testing.assert_allclose(turns @ np.swapaxes(turns, 1, 2), np.tile(np.eye(3), (50, 1, 1)), atol=1e-9)
    expected = np.arccos(np.clip((unit[0] * unit[1]).sum(axis=1), -1, 1))
    np.testing.assert_allclose(rotation_angles(turns), expected, atol=1e-6)


def test_the_scene_stands_upright():
    assert np.allclose(upright("human").up, [0, 1, 0]) and np.allclose(Y_UP @ [0, 1, 0], [0, 0, 1])


def test_hips_that_move_over_a_root_at_rest_carry_the_body():
    """Target joints only turn, so that the root has to go where the hips go."""
    mine, theirs = upright("human"), upright("knight")
    mats = np.tile(np.eye(3, 4), (2, len(theirs), 1, 1))
    below = np.array(["IK" not in n and "control" not in n and n != "root" for n in theirs.names])
    mats[1, below, :, 3] = (0.1, 0.2, 0.3)
    out = retarget_motion(mine, theirs, mats, by_part("human", "knight", mine, theirs))
    rooted = by_part("human", "knight", mine, theirs)
    rooted[mine.names.index("Root")] = theirs.names.index("root")
    for motion in (out, retarget_motion(mine, theirs, mats, rooted)):
        went = np.diff(heads_of(mine, motion.motions), axis=0)[0]
        np.testing.assert_allclose(
            went, np.tile(motion.scale * np.array([0.1, 0.2, 0.3]), (len(mine), 1)), atol=1e-9
        )
