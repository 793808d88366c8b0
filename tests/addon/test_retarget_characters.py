"""Motion of Mixamo, BVH and Rigify armatures on a rig."""

import addon_utils
import bpy
import numpy as np
import pytest
from bodies import add_body
from public_rigs import PARTS, nameless, upright
from retargeting import (
    LIMBS,
    MIXAMO,
    SPINES,
    body,
    degrees_between,
    key_turn,
    make_mixamo,
    mixamo_name,
    posed,
    way,
)

from gaussianimate.gaussianimate_addon.armature import JOINT
from gaussianimate.gaussianimate_addon.retarget_map import retarget_settings

ops = bpy.ops.gaussianimate


@pytest.fixture
def scene(empty_scene):
    return empty_scene


@pytest.fixture
def mixamo(scene):
    return make_mixamo()


@pytest.mark.parametrize("rig", ["human", "knight", "cesium"])
def test_a_mixamo_character_moves_the_rig(mixamo, rig):
    armature = body(rig)
    ops.retarget_action(source="mixamo")
    pairs = {pair.name: pair.source for pair in retarget_settings(armature).bones}
    for part, name in PARTS[rig].items():
        if part.partition(".")[0] in MIXAMO:
            right = SPINES if part in ("spine", "chest") else (mixamo_name(part),)
            assert pairs[name] in right, part
    for frame in (1, 4, 6):
        mine, theirs = posed(armature, frame), posed(mixamo, frame)
        for above, below in LIMBS:
            found = way(mine, PARTS[rig][above], PARTS[rig][below])
            wanted = way(theirs, mixamo_name(above), mixamo_name(below))
            assert degrees_between(found, wanted) < 1, (above, frame)
    went = posed(armature, 6)[PARTS[rig]["hips"]][:3, 3] - posed(armature, 1)[PARTS[rig]["hips"]][:3, 3]
    assert went[1] < -0.1 and abs(went[0]) < 0.01  # forward is -Y for both


def test_joints_without_names_are_moved_too(mixamo):
    skeleton, true = nameless(upright("knight"))
    mats = np.tile(np.eye(3, 4), (2, len(skeleton), 1, 1))
    armature = add_body("found", skeleton, mats)
    ops.retarget_action(source="mixamo")
    called = dict(zip(true, skeleton.names, strict=True))
    parts = {part: called[name] for part, name in PARTS["knight"].items()}
    pairs = {pair.name: pair.source for pair in retarget_settings(armature).bones}
    for above, below in LIMBS:
        assert pairs[parts[above]] == mixamo_name(above)
        mine, theirs = posed(armature, 6), posed(mixamo, 6)
        found, wanted = (
            way(mine, parts[above], parts[below]),
            way(theirs, mixamo_name(above), mixamo_name(below)),
        )
        assert degrees_between(found, wanted) < 1


BVH = """HIERARCHY
ROOT Hips
{{
 OFFSET 0 {hip} 0
 CHANNELS 6 Xposition Yposition Zposition Zrotation Yrotation Xrotation
{joints}
}}
MOTION
Frames: {count}
Frame Time: 0.041667
{frames}
"""


def bvh_text(angles):
    """A walking man of CMU's names, with the hips' height and two legs, a chest and two arms."""

    def joint(name, offset, inside):
        return f"JOINT {name}\n{{\nOFFSET {offset}\nCHANNELS 3 Zrotation Yrotation Xrotation\n{inside}\n}}\n"

    def end(offset):
        return f"End Site\n{{\nOFFSET {offset}\n}}"

    joints, order = "", []
    for side, sign in (("Left", 1), ("Right", -1)):
        foot = joint(f"{side}Foot", "0 -17 0", joint(f"{side}ToeBase", "0 -2 5", end("0 0 3")))
        joints += joint(f"{side}UpLeg", f"{3.5 * sign} -1 0", joint(f"{side}Leg", "0 -18 0", foot))
        order += [f"{side}{part}" for part in ("UpLeg", "Leg", "Foot", "ToeBase")]
    arms = ""
    for side, sign in (("Left", 1), ("Right", -1)):
        hand = joint(f"{side}Hand", f"{10 * sign} 0 0", end(f"{4 * sign} 0 0"))
        fore = joint(f"{side}ForeArm", f"{11 * sign} 0 0", hand)
        arms += joint(f"{side}Shoulder", f"{2 * sign} 8 0", joint(f"{side}Arm", f"{5 * sign} 0 0", fore))
    head = joint("Neck1", "0 9 0", joint("Head", "0 4 0", end("0 6 0")))
    joints += joint("LowerBack", "0 3 0", joint("Spine", "0 7 0", head + arms))
    order += ["LowerBack", "Spine", "Neck1", "Head"]
    order += [
        f"{side}{part}" for side in ("Left", "Right") for part in ("Shoulder", "Arm", "ForeArm", "Hand")
    ]
    frames = []
    for f, row in enumerate(angles):
        numbers = [0, 38, 2.0 * f, 0, 0, 0]
        for name in order:
            numbers += row.get(name, (0, 0, 0))
        frames.append(" ".join(f"{n:.5f}" for n in numbers))
    return BVH.format(hip=38, joints=joints, count=len(frames), frames="\n".join(frames))


def test_a_bvh_file_moves_the_rig(scene, tmp_path):
    addon_utils.enable("io_anim_bvh")
    swing = [np.sin(k) for k in np.linspace(0, 3, 8)]
    rows = [
        {"LeftUpLeg": (0, 0, 30 * s), "RightUpLeg": (0, 0, -30 * s), "RightLeg": (0, 0, 25 * s)}
        | {"LeftArm": (-70, 0, 0), "RightArm": (70, 20 * s, 0), "RightForeArm": (0, 30, 0)}
        for s in swing
    ]
    path = tmp_path / "walk.bvh"
    path.write_text(bvh_text(rows))
    assert bpy.ops.import_anim.bvh(filepath=str(path), global_scale=0.05) == {"FINISHED"}
    source = bpy.context.object
    armature = body("human")
    assert ops.retarget_action(source=source.name) == {"FINISHED"}
    pairs = {pair.name: pair.source for pair in retarget_settings(armature).bones}
    names = {
        "thigh": "UpLeg",
        "shin": "Leg",
        "foot": "Foot",
        "upperarm": "Arm",
        "forearm": "ForeArm",
        "hand": "Hand",
    }
    bvh = {f"{part}.{side[0]}": f"{side}{name}" for part, name in names.items() for side in ("Left", "Right")}
    assert pairs["pelvis"] == "Hips" and pairs["head"] == "Head"
    low = []
    for frame in (1, 5, 8):
        mine, theirs = posed(armature, frame), posed(source, frame)
        low.append(min(mine[name][2, 3] for name in ("foot_l", "foot_r", "ball_l", "ball_r")))
        for above, below in LIMBS:
            assert pairs[PARTS["human"][above]] == bvh[above]
            found = way(mine, PARTS["human"][above], PARTS["human"][below])
            assert degrees_between(found, way(theirs, bvh[above], bvh[below])) < 1, (above, frame)
    standing = min(
        bone.head_local[1] for bone in armature.data.bones if JOINT in bone and "ball" in bone.name
    )
    assert min(low) > standing - 0.05


def test_a_rigify_character_moves_the_rig(scene):
    """A real one: its deforming bones follow controls through constraints, in a tree full of helpers."""
    if addon_utils.enable("rigify", default_set=True) is None:
        pytest.skip("this Blender has no Rigify")
    try:
        bpy.ops.object.armature_basic_human_metarig_add()
        metarig = bpy.context.object
        bpy.ops.pose.rigify_generate()
        source = next(o for o in bpy.data.objects if o.type == "ARMATURE" and o != metarig)
        source.name = "rigify"
        for limb in ("upper_arm_parent", "thigh_parent"):
            for side in ("L", "R"):
                source.pose.bones[f"{limb}.{side}"]["IK_FK"] = 1.0
        key_turn(source, "upper_arm_fk.L", "Y", 0.8)
        key_turn(source, "forearm_fk.R", "Z", -0.9)
        key_turn(source, "thigh_fk.R", "X", -0.7)
        key_turn(source, "chest", "X", 0.3)
        bpy.ops.object.mode_set(mode="OBJECT")
        armature = body("human")
        assert ops.retarget_action(source="rigify") == {"FINISHED"}
        names = {"thigh": "thigh", "shin": "shin", "foot": "foot", "upperarm": "upper_arm"}
        names |= {"forearm": "forearm", "hand": "hand"}
        pairs = {pair.name: pair.source for pair in retarget_settings(armature).bones}
        assert pairs["head"] == "DEF-spine.006" and pairs["pelvis"] == "DEF-spine"
        for frame in (1, 6):
            mine, theirs = posed(armature, frame), posed(source, frame)
            for above, below in LIMBS:
                rigify = [f"DEF-{names[part[:-2]]}.{part[-1]}" for part in (above, below)]
                assert pairs[PARTS["human"][above]] == rigify[0]
                found = way(mine, PARTS["human"][above], PARTS["human"][below])
                assert degrees_between(found, way(theirs, *rigify)) < 1, (above, frame)
    finally:
        addon_utils.disable("rigify", default_set=True)
