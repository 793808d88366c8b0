"""A small synthetic rig: a bar along X that bends at joints, wrapped in splats, its truth known."""

from __future__ import annotations

import numpy as np

from gaussianimate.core.capture import Capture
from gaussianimate.core.cloud import GaussianCloud
from gaussianimate.core.rigging.rig import Rig
from gaussianimate.core.rotations import axis_angle_to_quaternion, normalize_quaternions, quaternion_to_matrix
from gaussianimate.core.skinning.skin import make_skin

FPS = 24.0


def make_cloud(count=300, joints=3, degree=1, seed=0):
    """Return splats of random shape and colour in a bar of length ``joints`` and radius 0.2."""
    rng = np.random.default_rng(seed)
    positions = rng.uniform([0, -0.2, -0.2], [joints, 0.2, 0.2], (count, 3))
    return GaussianCloud(
        positions=positions.astype(np.float32),
        rotations=normalize_quaternions(rng.normal(size=(count, 4))).astype(np.float32),
        scales=np.exp(rng.uniform(np.log(0.003), np.log(0.05), (count, 3))).astype(np.float32),
        opacities=rng.uniform(0.1, 1, count).astype(np.float32),
        sh=rng.normal(scale=0.4, size=(count, (degree + 1) ** 2, 3)).astype(np.float32),
    )


def make_rig(cloud, joints=3, frames=8, influences=3, seed=0):
    """Return a rig whose joints hinge about Y and whose outer bones add a small motion of their own."""
    rng = np.random.default_rng(seed)
    rest = cloud.positions
    centres = np.arange(joints) + 0.5
    nearness = np.exp(-((rest[:, :1] - centres) ** 2) / 0.15) + 1e-9
    order = np.argsort(-nearness, axis=1)[:, :influences]
    weights = np.take_along_axis(nearness, order, axis=1)
    weights /= weights.sum(axis=1, keepdims=True)
    time = np.linspace(0, 1, frames)
    angles = np.stack([(0.3 + 0.5 * j) * np.sin(2 * np.pi * time) for j in range(joints)], axis=1)
    axes = normalize_quaternions(np.array([0, 0, 1, 0.1]))[1:]
    rotations = axis_angle_to_quaternion(np.broadcast_to(axes, (frames, joints, 3)), angles)
    positions = np.stack([np.arange(joints), np.zeros(joints), np.zeros(joints)], axis=1).astype(float)
    rig = Rig(
        rest=rest,
        indices=order.astype(np.int32),
        weights=weights.astype(np.float32),
        bone_transforms=np.zeros((frames, joints, 3, 4)),
        joint_names=tuple(f"joint_{j}" for j in range(joints)),
        joint_parents=np.arange(-1, joints - 1).astype(np.int32),
        joint_positions=positions,
        bone_joints=np.arange(joints).astype(np.int32),
        joint_rotations=rotations,
        root_translations=0.3 * np.stack([time, time**2, -time], axis=1),
        frames=np.arange(frames).astype(np.int32),
        fps=FPS,
        canonical_frame=0,
    )
    rig.bone_transforms[:] = _outer_motions(rig, angles, rng)
    return rig


def _outer_motions(rig, angles, rng):
    from gaussianimate.core.rigging.posing import joint_motions

    motions = joint_motions(rig)
    axis = normalize_quaternions(rng.normal(size=(len(rig.bone_joints), 4)))[:, 1:]
    axis /= np.linalg.norm(axis, axis=1, keepdims=True)
    extra = quaternion_to_matrix(
        axis_angle_to_quaternion(np.broadcast_to(axis, (*angles.shape, 3)), 0.3 * angles)
    )
    out = motions[:, rig.bone_joints].copy()
    out[..., :3] = out[..., :3] @ extra
    out[..., 3] += 0.02 * angles[..., None]
    return out


def make_skin_of(rig):
    return make_skin(rig.rest, rig.indices, rig.weights, bone_count=len(rig.bone_joints))


def make_capture(cloud, rig, name="bar"):
    """Return the capture the rig replays, with its splats posed in every frame."""
    from gaussianimate.core.deform.deform import deform_cloud

    skin = make_skin_of(rig)
    clouds = [deform_cloud(cloud, skin, transforms) for transforms in rig.bone_transforms]
    return Capture(
        name=name,
        positions=np.stack([c.positions for c in clouds]),
        frame_valid=np.ones(len(clouds), bool),
        load_cloud=lambda frame: clouds[frame],
        fps=rig.fps,
        up="y",
    )
