"""Skeletons of public rigs and what their joints are."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gaussianimate.core.retarget.skeleton import RestSkeleton
from gaussianimate.core.rigging.skeleton.names import name_joints
from gaussianimate.core.rigging.skeleton.tree import KinematicTree
from gaussianimate.core.rotations import affine_inverse, affine_multiply

DATA = np.load(Path(__file__).with_name("skeletons.npz"))
Y_UP = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])
RIGS = ("human", "knight", "robot", "cesium")


def _sided(parts):
    """Names with {s} or {S} for both sides."""
    out = {}
    for part, name in parts.items():
        if "{" in name:
            for side in "LR":
                out[f"{part}.{side}"] = name.format(s=side.lower(), S=side)
        else:
            out[part] = name
    return out


_FINGERS = {
    f"{f}{i}": f"{f}_0{i}_{{s}}" for f in ("thumb", "index", "middle", "ring", "pinky") for i in (1, 2, 3)
}
ALONG_LEG = (("thigh", 1), ("shin", 2), ("foot", 3), ("toes", 5))
PARTS = {
    "human": _sided(
        {
            "hips": "pelvis",
            "spine": "spine_01",
            "chest": "spine_03",
            "neck": "neck_01",
            "head": "head",
            "clavicle": "clavicle_{s}",
            "upperarm": "upperarm_{s}",
            "forearm": "lowerarm_{s}",
            "hand": "hand_{s}",
            "thigh": "thigh_{s}",
            "shin": "calf_{s}",
            "foot": "foot_{s}",
            "toes": "ball_{s}",
        }
        | _FINGERS
    ),
    "knight": _sided(
        {
            "hips": "hips",
            "spine": "spine",
            "chest": "chest",
            "head": "head",
            "upperarm": "upperarm.{s}",
            "forearm": "lowerarm.{s}",
            "hand": "hand.{s}",
            "thigh": "upperleg.{s}",
            "shin": "lowerleg.{s}",
            "foot": "foot.{s}",
            "toes": "toes.{s}",
        }
    ),
    "robot": _sided(
        {
            "hips": "Hips",
            "spine": "Abdomen",
            "chest": "Torso_1",
            "neck": "Neck",
            "head": "Head_1",
            "clavicle": "Shoulder{S}",
            "upperarm": "UpperArm{S}",
            "forearm": "LowerArm{S}",
            "hand": "Palm2{S}",
            "thigh": "UpperLeg{S}",
            "shin": "LowerLeg{S}",
            "foot": "Foot{S}",
            "thumb1": "Thumb{S}",
            "thumb2": "Thumb2{S}",
            "index1": "Index{S}",
            "index2": "Index2{S}",
            "middle1": "Middle1{S}",
            "middle2": "Middle2{S}",
            "ring1": "Ring1{S}",
            "ring2": "Ring2{S}",
        }
    ),
    "cesium": {
        "hips": "Skeleton_torso_joint_1",
        "spine": "Skeleton_torso_joint_2",
        "chest": "torso_joint_3",
        "neck": "Skeleton_neck_joint_1",
        "head": "Skeleton_neck_joint_2",
        "upperarm.L": "Skeleton_arm_joint_L__4_",
        "upperarm.R": "Skeleton_arm_joint_R",
        "forearm.L": "Skeleton_arm_joint_L__3_",
        "forearm.R": "Skeleton_arm_joint_R__2_",
        "hand.L": "Skeleton_arm_joint_L__2_",
        "hand.R": "Skeleton_arm_joint_R__3_",
        **_sided({p: f"leg_joint_{{S}}_{i}" for p, i in ALONG_LEG}),
    },
}
# Joints that do as well: several to one part.
ALSO = {
    "human": {"spine_02": "spine"},
    "knight": {"wrist.l": "hand.L", "wrist.r": "hand.R"},
    "robot": {"Palm1L": "hand.L", "Palm3L": "hand.L", "Palm1R": "hand.R", "Palm3R": "hand.R", "Body": "hips"},
    "cesium": {},
}
HELPERS = ("IK", "control", "Pole", "slot")


def part_of(rig):
    """Joint name -> part of the body."""
    return {name: part for part, name in PARTS[rig].items()} | ALSO[rig]


def motions(rig):
    """Rest skeleton and motions (F, J, 3, 4) of a rig, as its file has them."""
    rest = DATA[f"{rig}.rest"].astype(float)
    skeleton = RestSkeleton.make(DATA[f"{rig}.names"].tolist(), DATA[f"{rig}.parents"], rest, world=Y_UP)
    return skeleton, DATA[f"{rig}.mats"].astype(float)


def posed_as_rest(rig, frame=0):
    """The same with one of the poses as the rest pose, as a rig built on a capture has it."""
    skeleton, mats = motions(rig)
    heads = np.einsum("jab,jb->ja", mats[frame, :, :, :3], skeleton.heads) + mats[frame, ..., 3]
    return (
        RestSkeleton.make(skeleton.names, skeleton.parents, heads, world=Y_UP),
        affine_multiply(mats, affine_inverse(mats[frame])),
    )


def upright(rig):
    """The rest skeleton, standing."""
    return posed_as_rest(rig)[0] if rig == "cesium" else motions(rig)[0]


def nameless(skeleton):
    """The skeleton without controls, its joints called as joints that were found; and their true names."""
    kept = np.array([not any(word in name for word in HELPERS) for name in skeleton.names])
    index, old = np.cumsum(kept) - 1, np.flatnonzero(kept)
    parents = [index[skeleton.parents[j]] if skeleton.parents[j] >= 0 else -1 for j in old]
    tree = KinematicTree(skeleton.heads[old], np.array(parents, np.int32))
    found = RestSkeleton.make(name_joints(tree), parents, skeleton.heads[old], world=skeleton.world)
    return found, [skeleton.names[j] for j in old]


def extracted(rig):
    """Bones of a rig found in the motion of a figure, and the part each stands for (None: nothing near)."""
    parents, places = DATA[f"{rig}_extracted.parents"], DATA[f"{rig}_extracted.positions"].astype(float)
    names = DATA[f"{rig}_extracted.names"].tolist()
    moving = np.flatnonzero(np.isin(np.arange(len(parents)), parents))
    index = {joint: bone for bone, joint in enumerate(moving.tolist())}
    tails = []
    for joint in moving:
        below = np.flatnonzero(parents == joint)
        tails.append(places[below[np.linalg.norm(places[below] - places[joint], axis=1).argmax()]])
    skeleton = RestSkeleton.make(
        [names[j] for j in moving],
        [index.get(int(parents[j]), -1) for j in moving],
        places[moving],
        tails,
        Y_UP,
    )
    true, all_names = DATA[f"{rig}_extracted.true"], DATA[f"{rig}.names"].tolist()
    parts = []
    for joint in moving:
        away = {p: np.linalg.norm(true[all_names.index(n)] - places[joint]) for p, n in PARTS[rig].items()}
        nearest = min(away, key=away.get)
        parts.append(nearest if away[nearest] < 0.1 * np.ptp(true[:, 1]) else None)
    return skeleton, parts


def indices(bone_map, target, source):
    """A map of names as indices."""
    places = {name: i for i, name in enumerate(source.names)}
    return np.array([places.get(bone_map.get(name), -1) for name in target.names])


def by_part(target_rig, source_rig, target, source):
    """The true map of two rigs."""
    pairs = {PARTS[target_rig][p]: PARTS[source_rig][p] for p in PARTS[target_rig] if p in PARTS[source_rig]}
    return indices(pairs, target, source)
