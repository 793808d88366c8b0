"""A pole that bends at its middle joint, with a cloth hanging on its upper half, in many short clips."""

import numpy as np

from gaussianimate.core.capture import Capture
from gaussianimate.core.given_skeleton import GivenSkeleton
from gaussianimate.core.rigging.skeleton.kinematics import joint_transforms
from gaussianimate.core.rotations import axis_angle_to_quaternion

JOINTS = np.array([[0, 0, 0], [0, 1, 0], [0, 2, 0]], float)
PARENTS = np.array([-1, 0, 1], np.int32)
_random = np.random.default_rng(3)
POLE, CLOTH = 120, 80
REST = np.concatenate(
    [
        np.c_[0.1 * _random.normal(size=POLE), np.linspace(0, 2, POLE), 0.1 * _random.normal(size=POLE)],
        np.c_[0.3 * _random.normal(size=CLOTH), _random.uniform(1.2, 1.9, CLOTH), np.full(CLOTH, 0.5)],
    ]
)
ON_UPPER = REST[:, 1] > 1
IS_CLOTH = np.arange(len(REST)) >= POLE


def capture(clips=12, frames=12, sway=0.15, fps=24.0):
    """The capture; frame 0 is the rest pose; the cloth goes `sway` aside with the sine of the bend."""
    random = np.random.default_rng(5)
    time = np.arange(frames) / fps
    bends = [
        random.uniform(0.4, 1.0) * np.sin(random.uniform(4, 9) * time + random.uniform(0, 6))
        for _ in range(clips)
    ]
    bend, root = np.concatenate(bends), np.zeros((clips * frames, 3))
    bend[0] = 0
    root[:, 0] = 0.3 * bend
    turns = np.zeros((len(bend), 3, 4))
    turns[..., 0] = 1
    turns[:, 1] = axis_angle_to_quaternion(np.array([0.0, 0.0, 1.0]), bend)
    motions = joint_transforms(PARENTS, JOINTS, turns, root)
    points = np.tile(REST, (len(bend), 1, 1))
    points[:, IS_CLOTH, 0] += sway * np.sin(bend)[:, None]
    chosen = motions[:, ON_UPPER.astype(int)]
    moved = np.einsum("fnab,fnb->fna", chosen[..., :3], points) + chosen[..., 3]
    skeleton = GivenSkeleton.make(("pole", "bend", "tip"), PARENTS, JOINTS, motions)
    return Capture(
        name="swinging",
        positions=moved.astype(np.float32),
        frame_valid=np.ones(len(bend), bool),
        fps=fps,
        up="y",
        clips=np.repeat(np.arange(clips), frames).astype(np.int32),
        clip_names=tuple(f"swing{c}" for c in range(clips)),
        skeleton=skeleton,
    )
