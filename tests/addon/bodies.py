"""Rigs of bodies, wrapped in splats, whose joints are those of public rigs or of one's own."""

from __future__ import annotations

import bpy
import numpy as np
from rigs import make_cloud, make_skin_of

from gaussianimate.core.capture import Capture
from gaussianimate.core.rigging.kabsch import kabsch
from gaussianimate.core.rigging.posing import joint_motions
from gaussianimate.core.rigging.rig import Rig
from gaussianimate.core.rigging.skeleton.kinematics import local_quaternions
from gaussianimate.core.rigging.skeleton.tree import KinematicTree
from gaussianimate.gaussianimate_addon.capture_object import create_capture_object
from gaussianimate.gaussianimate_addon.motion_switch import remember_replay
from gaussianimate.gaussianimate_addon.rig_object import apply_rig


def body_rig(skeleton, mats, fps=24.0, per_joint=6):
    """A rig whose outer bones are its joints, with a few splats about each (deterministic)."""
    rng = np.random.default_rng(0)
    joints = len(skeleton)
    size = np.ptp(skeleton.heads, axis=0).max()
    rest = np.repeat((skeleton.heads + skeleton.tails) / 2, per_joint, axis=0)
    rest = (rest + rng.normal(scale=0.02 * size, size=rest.shape)).astype(np.float32)
    turns = kabsch(np.swapaxes(mats[..., :3].astype(float), -1, -2))
    tree = KinematicTree(skeleton.heads, skeleton.parents)
    root = skeleton.heads[0]
    rig = Rig(
        rest=rest,
        indices=np.repeat(np.arange(joints, dtype=np.int32), per_joint)[:, None],
        weights=np.ones((len(rest), 1), np.float32),
        bone_transforms=np.zeros((len(mats), joints, 3, 4)),
        joint_names=skeleton.names,
        joint_parents=skeleton.parents,
        joint_positions=skeleton.heads,
        bone_joints=np.arange(joints, dtype=np.int32),
        joint_rotations=local_quaternions(tree, turns),
        root_translations=mats[:, 0, :, :3] @ root + mats[:, 0, :, 3] - root,
        frames=np.arange(len(mats), dtype=np.int32),
        fps=fps,
        canonical_frame=0,
    )
    rig.bone_transforms[:] = joint_motions(rig)
    return rig


def add_body(name, skeleton, mats, up="y"):
    """Add a rigged capture of the body to the scene and make its armature active."""
    rig = body_rig(skeleton, mats)
    motion = rig.bone_transforms[:, rig.indices[:, 0]]
    positions = (np.einsum("fnij,nj->fni", motion[..., :3], rig.rest) + motion[..., 3]).astype(np.float32)
    cloud = make_cloud(len(rig.rest), degree=0)
    cloud.positions[:] = positions[0]
    rig.rest[:] = positions[0]
    capture = Capture(
        name=name,
        positions=positions,
        frame_valid=np.ones(len(positions), bool),
        load_cloud=lambda frame: cloud,
        fps=rig.fps,
        up=up,
    )
    object = create_capture_object(bpy.context, capture, cloud, up)
    armature = apply_rig(bpy.context, object, rig, make_skin_of(rig))
    remember_replay(armature)
    bpy.context.view_layer.objects.active = armature
    return armature
