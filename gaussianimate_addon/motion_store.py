"""What a rig has learned of its motion, kept in the .blend: in a custom property of the armature data.

The bytes are those of a text data-block that the property points to: Blender copies an armature with all its
properties at every change of the pose, and a text never. Motion of more than `LARGEST` bytes lies in a file
beside the .blend from the moment that is saved, as undo steps and saves would carry it along. The rest
matrices of the bones are kept with it: they say how the armature stood when its motion was learned.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, cast

import bpy
import numpy as np
from bpy.app.handlers import persistent
from numpy.typing import NDArray

from ..core.atomic_file import replacing
from ..core.errors import GaussiAnimateError, RigError
from ..core.motion.learned import LearnedMotion, rig_of
from ..core.rigging.rig import Rig
from .armature import JOINT, SKIN_BONE, bone_matrices, indexed_bones
from .attributes import read_attribute, splats
from .skin_attributes import read_skin

MOTION = "gaussianimate_motion"  # property of the armature data: digest, joints, skin, text or file
BYTES = "gaussianimate_bytes"  # property of the text
LARGEST = 100 * 2**20  # bytes that are packed in a saved .blend
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
    return _kept(_data(armature)) is not None


def forget_motion(armature: bpy.types.Object) -> None:
    """Remove what is kept; a file beside the .blend stays where it is."""
    forget_motion_of(_data(armature))


def forget_motion_of(data: bpy.types.Armature) -> None:
    """Likewise, of armature data."""
    if MOTION in data:
        if _kept(data) is not None:
            _drop_text(data[MOTION])
        del data[MOTION]


def motion_digest(armature: bpy.types.Object) -> str:
    """Return what changes whenever the motion does, "" where none is kept. Cheap."""
    kept = _kept(_data(armature))
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
        known = (digest, LearnedMotion.from_bytes(_packed(_data(armature))))
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

    Raises
    ------
    RigError : no motion is kept, or it does not fit the object's splats
    """
    motion, skin = load_motion(armature), read_skin(splats(object))
    return rig_of(motion, read_attribute(splats(object), "position"), skin.indices, skin.weights)


def _kept(data: bpy.types.Armature) -> Any:
    """What is kept with armature data; None where nothing is, or what has that name is something else."""
    kept: Any = data.get(MOTION)
    names = kept.keys() if hasattr(kept, "keys") else ()
    return kept if {"digest", "joints", "skin"} <= set(names) else None


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


def _packed(data: bpy.types.Armature) -> bytes:
    kept: Any = data[MOTION]
    if "file" not in kept:
        text = kept.get("text")
        if text is None or BYTES not in text:
            raise RigError(f"The motion of '{data.name}' was deleted; build the rig again from the capture.")
        packed = text[BYTES]
        if not isinstance(packed, bytes) or hashlib.sha256(packed).hexdigest() != kept["digest"]:
            raise RigError(f"The motion of '{data.name}' is damaged; build the rig again from the capture.")
        return packed
    path = Path(bpy.path.abspath(kept["file"], library=data.library))
    try:
        packed = path.read_bytes()
    except OSError as error:
        raise RigError(
            f"{path}, the motion of '{data.name}', cannot be read ({error.strerror or error}); put it back "
            "beside the .blend, or build the rig again."
        ) from error
    if hashlib.sha256(packed).hexdigest() != kept["digest"]:
        raise RigError(f"{path} is not the motion of '{data.name}'; put that back, or build the rig again.")
    return packed


@persistent
def _before_save(path: str, *_: Any) -> None:
    """Large motions lie beside the file that is saved, wherever they lay before."""
    if not path:
        return
    for data in bpy.data.armatures:
        if data.library is None and _kept(data) is not None:
            _place(data, Path(path))


def _place(data: bpy.types.Armature, blend: Path) -> None:
    kept: Any = data[MOTION]
    name = f"{blend.stem}.{bpy.path.clean_name(data.name)}.{kept['digest'][:8]}.motion.npz"
    target = blend.parent / name
    try:
        packed = _packed(data)
        if "file" not in kept and len(packed) <= LARGEST:
            return
        if not target.exists():
            with replacing(target) as temporary:
                temporary.write_bytes(packed)
    except GaussiAnimateError as error:  # it stays where it is, the file itself must still be saved
        print(f"GaussiAnimate: {error}")
        return
    kept["file"] = f"//{name}"
    _drop_text(kept)


def _drop_text(kept: Any) -> None:
    """Remove the packed bytes, unless another armature has them too."""
    text = kept.get("text")
    if text is not None:
        del kept["text"]
        if text.users == 0:
            bpy.data.texts.remove(text)


@persistent
def _after_load(*_: Any) -> None:
    _loaded.clear()


_HANDLERS = (("save_pre", _before_save), ("load_post", _after_load))


def register() -> None:
    """Follow saving and loading."""
    for event, function in _HANDLERS:
        getattr(bpy.app.handlers, event).append(function)


def unregister() -> None:
    """Undo :func:`register`."""
    for event, function in _HANDLERS:
        getattr(bpy.app.handlers, event).remove(function)
    _loaded.clear()
