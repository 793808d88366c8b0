"""Rigs and the characters whose motion goes onto them."""

from math import radians

import bpy
import numpy as np
from bodies import add_body
from mathutils import Matrix, Vector
from public_rigs import motions, posed_as_rest
from sources import Y_UP, key_motion, make_armature

LIMBS = [
    (f"{a}.{side}", f"{b}.{side}")
    for a, b in (("upperarm", "forearm"), ("forearm", "hand"), ("thigh", "shin"), ("shin", "foot"))
    for side in "LR"
]


def body(rig="human", frame=0):
    """A rig that faces -Y and stands on the ground, its joints called as in its file."""
    skeleton, mats = posed_as_rest(rig, frame)
    return add_body(rig, skeleton, mats)


def source_of(rig, names=None, frames=None, name="source"):
    """An animated armature of a public rig, standing."""
    skeleton, mats = motions(rig)
    names = list(names or skeleton.names)
    armature = make_armature(name, names, skeleton.parents.tolist(), skeleton.heads, roll=0.4)
    key_motion(armature, names, mats[:frames])
    armature.matrix_world = Y_UP
    return armature


def posed(armature, frame):
    """Matrices of the evaluated pose in the scene, by bone."""
    bpy.context.scene.frame_set(frame)
    evaluated = armature.evaluated_get(bpy.context.evaluated_depsgraph_get())
    return {bone.name: np.array(evaluated.matrix_world @ bone.matrix) for bone in evaluated.pose.bones}


def curves(armature):
    action = armature.animation_data.action
    bag = action.layers[0].strips[0].channelbag(armature.animation_data.action_slot)
    return {(c.data_path, c.array_index): [tuple(k.co) for k in c.keyframe_points] for c in bag.fcurves}


def values(armature):
    return {key: np.array(points)[:, 1] for key, points in curves(armature).items()}


def way(pose, above, below):
    step = pose[below][:3, 3] - pose[above][:3, 3]
    return step / np.linalg.norm(step)


def degrees_between(a, b):
    return np.degrees(np.arccos(np.clip(a @ b, -1, 1)))


MIXAMO = {
    "hips": "Hips",
    "spine": "Spine",
    "chest": "Spine2",
    "neck": "Neck",
    "head": "Head",
    "clavicle": "{}Shoulder",
    "upperarm": "{}Arm",
    "forearm": "{}ForeArm",
    "hand": "{}Hand",
    "thigh": "{}UpLeg",
    "shin": "{}Leg",
    "foot": "{}Foot",
    "toes": "{}ToeBase",
}


def t_pose(names):
    """Bones of a man in a T-pose, facing +Z, Y up, centimetres: as game characters come."""
    heads = {
        "hips": (0, 100, 0),
        "spine": (0, 110, 0),
        "spine1": (0, 122, 0),
        "chest": (0, 135, 0),
        "neck": (0, 150, 0),
        "head": (0, 160, 2),
    }
    parents = {"spine": "hips", "spine1": "spine", "chest": "spine1", "neck": "chest", "head": "neck"}
    arm = (
        ("clavicle", (5, 144, 0)),
        ("upperarm", (18, 145, 0)),
        ("forearm", (45, 145, 0)),
        ("hand", (72, 145, 0)),
    )
    leg = (("thigh", (9, 95, 0)), ("shin", (10, 52, 1)), ("foot", (10, 9, -2)), ("toes", (10, 2, 12)))
    for side, sign in (("L", 1), ("R", -1)):
        for limb, top in ((arm, "chest"), (leg, "hips")):
            above = top
            for part, (x, y, z) in limb:
                heads[f"{part}.{side}"] = (sign * x, y, z)
                parents[f"{part}.{side}"] = above
                above = f"{part}.{side}"
    order = list(heads)
    called = [names(part) for part in order]
    return (
        called,
        [order.index(parents[p]) if p in parents else -1 for p in order],
        np.array([*heads.values()], float),
    )


SPINES = tuple(f"mixamorig:Spine{number}" for number in ("", 1, 2))


def mixamo_name(part):
    stem, _, side = part.partition(".")
    name = "Spine1" if stem == "spine1" else MIXAMO[stem]
    return "mixamorig:" + name.format({"L": "Left", "R": "Right", "": ""}[side])


def key_turn(armature, name, axis, angle, frames=(1, 6)):
    """Key a bone turning about an axis of the armature."""
    bone = armature.pose.bones[name]
    rest = bone.bone.matrix_local.to_3x3()
    bone.rotation_mode = "QUATERNION"
    for frame, part in zip(frames, (0.0, 1.0), strict=True):
        turn = Matrix.Rotation(angle * part, 3, axis)
        bone.rotation_quaternion = (rest.inverted() @ turn @ rest).to_quaternion()
        bone.keyframe_insert("rotation_quaternion", frame=frame)


def make_mixamo():
    """As an FBX of Mixamo comes in: lying in its own axes, a hundredth the size, turned up by its object."""
    armature = make_armature("mixamo", *t_pose(mixamo_name))
    armature.matrix_world = Matrix.Rotation(radians(90), 4, "X") @ Matrix.Scale(0.01, 4)
    bend = {"LeftUpLeg": ("X", -0.9), "LeftLeg": ("X", 1.2), "RightArm": ("Z", 1.1), "Spine1": ("X", 0.3)}
    bend |= {"RightForeArm": ("Y", 0.8), "LeftArm": ("Z", -0.9), "Head": ("Y", 0.4)}
    for name, (axis, angle) in bend.items():
        key_turn(armature, f"mixamorig:{name}", axis, angle)
    hips = armature.pose.bones["mixamorig:Hips"]
    for frame, forward in ((1, 0), (6, 60)):
        hips.location = hips.bone.matrix_local.to_3x3().inverted() @ Vector((0, 0, forward))
        hips.keyframe_insert("location", frame=frame)
    return armature
