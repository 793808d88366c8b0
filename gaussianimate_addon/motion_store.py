"""What a rig has learned of its motion, kept in the .blend: in a custom property of the armature data.

Its bytes lie apart (`motion_files`). The rest matrices of the bones are kept with it: they say how the
armature stood when its motion was learned.
"""

from __future__ import annotations

import hashlib
from typing import Any, cast

import bpy
import numpy as np
from bpy.app.handlers import persistent
from numpy.typing import NDArray

from ..core.errors import RigError
from ..core.motion.learned import LearnedMotion, rig_of
from ..core.rigging.rig import Rig
from . import motion_files
from .armature import JOINT, SKIN_BONE, bone_matrices, indexed_bones
from .attributes import read_attribute, splats
from .motion_files import BYTES, MOTION, drop_text, kept_with, packed_motion
from .skin_attributes import BASE, SKIN, influence_count, read_skin

F64 = NDArray[np.float64]

_loaded: dict[int, tuple[str, LearnedMotion]] = {}  # session number of the armature data -> digest, motion


def store_motion(armature: bpy.types.Object, motion: LearnedMotion, space: F64 | None = None) -> None:
    """Keep the motion with the armature; what was kept before is replaced.

    Parameters
    ----------
    space : (4, 4) similarity from the axes of the motion to those of the armature; None: they are the same
    """
    joints, skin = indexed_bones(armature, JOINT), indexed_bones(armature, SKIN_BONE)
    packed = motion.to_bytes()
    digest = hashlib.sha256(packed).hexdigest()
    forget_motion(armature)
    text = bpy.data.texts.new(f".{_data(armature).name} motion")
    text.use_fake_user = False  # it goes with the armature
    text[BYTES] = packed
    _data(armature)[MOTION] = {
        "digest": digest,
        "text": text,
        "joints": _rests(joints, JOINT, space) | {"parents": [joint_above(bone) for bone in joints]},
        "skin": _rests(skin, SKIN_BONE, space),
    }
    _loaded[_data(armature).session_uid] = (digest, motion)


def has_motion(armature: bpy.types.Object) -> bool:
    """Return whether a motion is kept with the armature."""
    return kept_with(_data(armature)) is not None


def forget_motion(armature: bpy.types.Object) -> None:
    """Remove what is kept; a file beside the .blend stays where it is."""
    forget_motion_of(_data(armature))


def forget_motion_of(data: bpy.types.Armature) -> None:
    """Likewise, of armature data."""
    if MOTION in data:
        if kept_with(data) is not None:
            drop_text(data[MOTION])
        del data[MOTION]


def motion_digest(armature: bpy.types.Object) -> str:
    """Return what changes whenever the motion does, "" where none is kept. Cheap."""
    kept = kept_with(_data(armature))
    return "" if kept is None else kept["digest"]


def load_motion(armature: bpy.types.Object) -> LearnedMotion:
    """Return the motion kept with the armature; reading it again costs nothing.

    Raises
    ------
    RigError : none is kept, its file is missing, or it is damaged
    """
    digest = motion_digest(armature)
    if not digest:
        raise RigError(f"'{armature.name}' has learned no motion; build the rig again from the capture.")
    known = _loaded.get(_data(armature).session_uid)
    if known is None or known[0] != digest:
        known = (digest, LearnedMotion.from_bytes(packed_motion(_data(armature))))
        _loaded[_data(armature).session_uid] = known
    return known[1]


def kept_rests(armature: bpy.types.Object) -> tuple[dict[int, F64], dict[int, F64]]:
    """Return the rest matrices (4, 4) when the motion was stored, in its axes, by index: those of the
    joints that have a bone, and those of the skin bones."""
    kept: Any = _data(armature)[MOTION]
    return _by_index(kept["joints"]), _by_index(kept["skin"])


def kept_tree(armature: bpy.types.Object) -> dict[int, tuple[int, float]]:
    """Return, likewise, the parent joint (-1: none) and the length of the bone of each joint."""
    kept: Any = _data(armature)[MOTION]["joints"]
    return dict(zip(kept["index"], zip(kept["parents"], kept["lengths"], strict=True), strict=True))


def stored_rig(object: bpy.types.Object, armature: bpy.types.Object) -> Rig:
    """Return the whole rig of a splat object, in the axes of its capture, as it was learned.

    Layers drawn on its weights are left out.

    Raises
    ------
    RigError : no motion is kept, or it does not fit the object's splats
    """
    motion, data = load_motion(armature), splats(object)
    skin = read_skin(data, BASE if influence_count(data, BASE) else SKIN)  # without what was drawn since
    if (skin.indices < 0).any():
        raise RigError(
            f"The weights of '{object.name}' are no longer those of its capture; build its rig anew"
        )
    return rig_of(motion, read_attribute(splats(object), "position"), skin.indices, skin.weights)


def _data(armature: bpy.types.Object) -> bpy.types.Armature:
    return cast(bpy.types.Armature, armature.data)


def joint_above(bone: bpy.types.Bone) -> int:
    """Return the nearest joint that a bone hangs on, -1 where there is none."""
    return next((above[JOINT] for above in bone.parent_recursive if JOINT in above), -1)


def _rests(bones: list[bpy.types.Bone], key: str, space: F64 | None) -> dict[str, Any]:
    matrices, lengths = bone_matrices(bones), np.array([bone.length for bone in bones])
    if space is not None:
        scale = np.cbrt(np.linalg.det(space[:3, :3]))
        matrices = np.linalg.inv(space) @ matrices
        matrices[:, :3, :3] *= scale
        lengths /= scale
    return {
        "index": [bone[key] for bone in bones],
        "matrices": matrices.astype("<f8").tobytes(),
        "lengths": lengths.tolist(),
    }


def _by_index(kept: Any) -> dict[int, F64]:
    matrices = np.frombuffer(kept["matrices"], "<f8").reshape(-1, 4, 4)
    return dict(zip(list(kept["index"]), matrices, strict=True))


@persistent
def _after_load(*_: Any) -> None:
    _loaded.clear()


def register() -> None:
    """Follow saving and loading."""
    motion_files.register()
    bpy.app.handlers.load_post.append(_after_load)


def unregister() -> None:
    """Undo :func:`register`."""
    bpy.app.handlers.load_post.remove(_after_load)
    motion_files.unregister()
    _loaded.clear()
