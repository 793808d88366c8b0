"""Bone maps that are suggested: how many bones are right, on rigs of others and on joints that were found."""

import numpy as np
import pytest
from public_rigs import PARTS, RIGS, extracted, nameless, part_of, posed_as_rest, upright

from gaussianimate.core.retarget.bone_names import read_name, read_names
from gaussianimate.core.retarget.skeleton import RestSkeleton
from gaussianimate.core.retarget.suggest import suggest_bone_map


def right(parts, target, source_rig, source, also=()):
    """How many parts of the body that both have got a right source bone, and of how many."""
    found, known = suggest_bone_map(target, source), part_of(source_rig)
    shared = {part for part in parts if part in PARTS[source_rig]}
    good = set()
    for part, each in zip(parts, found, strict=True):
        got = known.get(source.names[each.source]) if each.source >= 0 else None
        if part in shared and (got == part or {got, part} in also):
            good.add(part)
    return len(good), len(shared)


PAIRS = [(a, b) for a in RIGS for b in RIGS if a != b]


@pytest.mark.parametrize("target, source", PAIRS)
def test_named_rigs_find_each_other(target, source):
    mine, theirs = upright(target), upright(source)
    parts = [part_of(target).get(name) for name in mine.names]
    assert len(set(right(parts, mine, source, theirs))) == 1  # all of them


@pytest.mark.parametrize("target", ["human", "knight", "cesium"])
@pytest.mark.parametrize("source", ["human", "knight", "cesium"])
def test_joints_without_meaningful_names_are_found_by_the_build(target, source):
    mine, true = nameless(upright(target))
    assert not any(name.roles for name in read_names(mine))
    parts = [part_of(target).get(name) for name in true]
    good, count = right(parts, mine, source, upright(source))
    assert good >= 0.83 * count


@pytest.mark.parametrize("target", ["human", "cesium"])
@pytest.mark.parametrize("source", ["human", "knight", "cesium"])
def test_joints_found_in_motion_get_bones_of_rigs(target, source):
    """A found joint may stand between two true ones: the neighbour along the limb is right too."""
    mine, parts = extracted(target)
    both = [{"hips", "spine"}, *({a + s, b + s} for s in (".L", ".R") for a, b in LIKE)]
    good, count = right(parts, mine, source, upright(source), both)
    assert good >= 0.7 * count


LIKE = (("clavicle", "upperarm"), ("foot", "toes"))


def test_a_source_that_faces_another_way_or_lies_down_is_mapped_alike():
    mine, _ = nameless(upright("human"))
    source = upright("knight")
    expected = [each.source for each in suggest_bone_map(mine, source)]
    for turn in (
        [[0, -1, 0], [1, 0, 0], [0, 0, 1]],
        [[-1, 0, 0], [0, -1, 0], [0, 0, 1]],
        [[1, 0, 0], [0, 0, -1], [0, 1, 0]],
    ):
        turned = RestSkeleton.make(
            source.names, source.parents, 3 * source.heads + 1, world=np.array(turn) @ source.world
        )
        assert [each.source for each in suggest_bone_map(mine, turned)] == expected


def test_maps_keep_who_is_above_whom():
    mine, theirs = extracted("cesium")[0], upright("human")
    found = [(t, each.source) for t, each in enumerate(suggest_bone_map(mine, theirs)) if each.source >= 0]
    above, source_above = mine.ancestry(), theirs.ancestry()
    assert len({s for _, s in found}) == len(found) > 8
    for t1, s1 in found:
        for t2, s2 in found:
            assert above[t1, t2] == source_above[s1, s2]


def test_confidence_tells_right_from_wrong():
    """Over all pairs of rigs, of suggestions held for sure more are right than of doubtful ones."""
    sure, doubtful = [], []
    for target, source in PAIRS:
        mine, true = nameless(upright(target))
        theirs, known = upright(source), part_of(source)
        for name, each in zip(true, suggest_bone_map(mine, theirs), strict=True):
            part = part_of(target).get(name)
            if part in PARTS[source] and each.source >= 0:
                (sure if each.confidence >= 0.75 else doubtful).append(
                    known.get(theirs.names[each.source]) == part
                )
    assert min(len(sure), len(doubtful)) > 20
    assert np.mean(sure) > np.mean(doubtful) + 0.15


def test_a_fox_is_mapped_on_its_like_and_hardly_on_a_man():
    fox = upright("fox")
    found = suggest_bone_map(nameless(fox)[0], fox)
    assert np.mean([each.source == t for t, each in enumerate(found)]) > 0.9
    on_man = zip(suggest_bone_map(fox, upright("human")), fox.names, strict=True)
    assert max(each.confidence for each, name in on_man if "Tail" in name) < 0.4


@pytest.mark.parametrize(
    "name, part, side",
    [
        ("mixamorig:LeftUpLeg", "thigh", "L"),
        ("mixamorig:RightHandThumb1", "thumb", "R"),
        ("DEF-upper_arm.L.001", "upperarm", "L"),
        ("DEF-f_index.01.R", "index", "R"),
        ("Bip001 R Calf", "shin", "R"),
        ("ValveBiped.Bip01_L_Forearm", "forearm", "L"),
        ("CC_Base_L_Thigh", "thigh", "L"),
        ("J_Bip_C_UpperChest", "chest", ""),
        ("lfemur", "thigh", "L"),
        ("rtoes", "toes", "R"),
        ("LHipJoint", "hipbone", "L"),
        ("rShldr", "upperarm", "R"),
        ("LowerBack", "spine", ""),
        ("hand_l", "hand", "L"),
    ],
)
def test_names_are_understood(name, part, side):
    read = read_name(name)
    assert max(read.roles, key=read.roles.get) == part and read.side == side and not read.helper


@pytest.mark.parametrize("name", ["kneeIK.l", "MCH-foot.R", "PoleTargetL", "control-toe-roll.r", "Head_end"])
def test_controls_and_ends_are_set_aside(name):
    assert read_name(name).helper


def names_of(words, parents):
    heads = np.random.default_rng(0).normal(size=(len(words), 3))
    return read_names(RestSkeleton.make(words, parents, heads))


def test_an_arm_beside_a_forearm_and_a_leg_below_an_upleg():
    names = names_of(
        ["Hips", "LeftUpLeg", "LeftLeg", "LeftShoulder", "LeftArm", "LeftForeArm"], [-1, 0, 1, 0, 3, 4]
    )
    assert [
        max(n.roles, key=n.roles.get) for n in names
    ] == "hips thigh shin clavicle upperarm forearm".split()


def test_the_trunk_of_rigify_is_told_by_what_hangs_on_it():
    spine = ["DEF-spine", *(f"DEF-spine.00{i}" for i in range(1, 7))]
    names = names_of([*spine, "DEF-shoulder.L", "DEF-thigh.L"], [-1, 0, 1, 2, 3, 4, 5, 3, 0])
    assert [
        max(n.roles, key=n.roles.get) for n in names[:7]
    ] == "hips spine spine chest neck neck head".split()


def test_leg_joints_are_counted():
    names = names_of([*(f"leg_joint_L_{i}" for i in (1, 2, 3, 5)), "torso"], [-1, 0, 1, 2, -1])
    assert [max(n.roles, key=n.roles.get) for n in names[:4]] == "thigh shin foot toes".split()


def test_a_rest_pose_amid_a_stride_is_mapped():
    for frame in (2, 5):
        mine = posed_as_rest("cesium", frame)[0]
        parts = [part_of("cesium").get(name) for name in nameless(mine)[1]]
        good, count = right(parts, nameless(mine)[0], "human", upright("human"))
        assert good >= 0.8 * count


def test_a_neck_whose_head_has_no_bone_gets_the_head():
    human, knight = upright("human"), upright("knight")
    kept = [j for j, name in enumerate(human.names) if name != "head"]
    index = {j: k for k, j in enumerate(kept)}
    parents = [index.get(int(human.parents[j]), -1) for j in kept]
    headless = RestSkeleton.make(
        [human.names[j] for j in kept], parents, human.heads[kept], human.tails[kept], human.world
    )
    found = suggest_bone_map(headless, knight)[headless.names.index("neck_01")]
    assert knight.names[found.source] == "head"


def test_a_chain_that_lies_flat_is_mapped_on_its_like():
    heads = np.array([[0, 0, 0], [1, 0, 0], [2.5, 0, 0], [3, 0, 0]], float)
    target = RestSkeleton.make([f"joint_{i}" for i in range(4)], [-1, 0, 1, 2], heads)
    source = RestSkeleton.make(["p", "q", "r", "s"], [-1, 0, 1, 2], 5 * heads + 1)
    assert [each.source for each in suggest_bone_map(target, source)] == [0, 1, 2, 3]


def test_hundreds_of_other_bones_do_not_hide_a_body():
    """Hair and skirts hang on many game characters; names count though most tell nothing."""
    human, rng = upright("human"), np.random.default_rng(0)
    count, more = len(human), 300
    parents = [*human.parents.tolist(), *rng.integers(0, count, more).tolist()]
    strands = human.heads[parents[count:]] + rng.normal(scale=0.1, size=(more, 3))
    names = [*human.names, *(f"strand_{i}" for i in range(more))]
    source = RestSkeleton.make(names, parents, np.vstack([human.heads, strands]), world=human.world)
    found = suggest_bone_map(human, source)
    assert [each.source for each in found] == list(range(count))
