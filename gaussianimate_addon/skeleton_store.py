"""A capture's clips, given skeleton and place on a mesh, beside its frames: they travel in the .blend.

Names and parents are lists in a custom property of the object that holds the frames, transforms are raw bytes
(float32, little-endian), as lists of them are slow.
"""

from __future__ import annotations

from typing import Any

import bpy
import numpy as np
from numpy.typing import NDArray

from ..core.capture import Capture
from ..core.formats.mesh_splats import MeshSamples
from ..core.given_skeleton import GivenSkeleton

SKELETON = "gaussianimate_skeleton"  # custom property of the frames: names, parents, rest, joint_mats
CLIPS = "gaussianimate_clips"  # likewise: clips, names
SAMPLES = "gaussianimate_samples"  # likewise: where splats lie on the mesh they were made from


def store_skeleton(holder: bpy.types.Object, skeleton: GivenSkeleton) -> None:
    """Keep a skeleton on the object that holds the frames; an earlier one is replaced."""
    holder[SKELETON] = {
        "names": list(skeleton.names),
        "parents": skeleton.parents.tolist(),
        "rest": skeleton.rest.ravel().tolist(),
        "joint_mats": skeleton.joint_mats.astype("<f4").tobytes(),
    }


def load_skeleton(holder: bpy.types.Object) -> GivenSkeleton | None:
    """Read the skeleton back, None where there is none."""
    kept: Any = holder.get(SKELETON)
    if kept is None:
        return None
    names = list(kept["names"])
    mats = np.frombuffer(kept["joint_mats"], "<f4").astype(np.float64)
    return GivenSkeleton(
        tuple(names),
        np.array(kept["parents"], np.int32),
        np.array(kept["rest"], np.float64).reshape(-1, 3),
        mats.reshape(-1, len(names), 3, 4),
    )


def move_skeleton(holder: bpy.types.Object, matrix: NDArray[np.float64]) -> None:
    """Let the skeleton follow frames that were moved by ``matrix`` (4, 4)."""
    skeleton = load_skeleton(holder)
    if skeleton is not None:
        store_skeleton(holder, skeleton.moved(matrix))


def store_clips(holder: bpy.types.Object, capture: Capture) -> None:
    """Keep which motion each frame belongs to."""
    if capture.clips is not None:
        holder[CLIPS] = {"clips": capture.clips.tolist(), "names": list(capture.clip_names)}


def load_clips(holder: bpy.types.Object) -> tuple[NDArray[np.int32] | None, tuple[str, ...]]:
    """Read clips (F,) and their names back."""
    kept: Any = holder.get(CLIPS)
    return (None, ()) if kept is None else (np.array(kept["clips"], np.int32), tuple(kept["names"]))


def store_samples(holder: bpy.types.Object, samples: MeshSamples | None) -> None:
    """Keep where the splats lie on the mesh they were made from, to follow it in further captures."""
    if samples is not None:
        holder[SAMPLES] = {
            "triangle": samples.triangle.astype("<i4").tobytes(),
            "barycentric": samples.barycentric.astype("<f4").tobytes(),
            "spacing": samples.spacing,
            "faces": samples.faces,
        }


def load_samples(holder: bpy.types.Object) -> MeshSamples | None:
    """Read the places on a mesh back, None where there are none."""
    kept: Any = holder.get(SAMPLES)
    if kept is None:
        return None
    barycentric = np.frombuffer(kept["barycentric"], "<f4").reshape(-1, 3)
    return MeshSamples(np.frombuffer(kept["triangle"], "<i4"), barycentric, kept["spacing"], kept["faces"])
