"""From the armature as it was edited to the corrected skeleton, in the axes of the stored rig."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import bpy
import numpy as np
from numpy.typing import NDArray

from ..core.deform.deform import diagonal
from ..core.errors import CaptureError, RigError
from ..core.rigging.edited_skeleton import EditedSkeleton
from ..core.rigging.rig import Rig
from .affine import apply_affine, fit_similarity
from .armature import SKIN_BONE
from .bind import bind_skin_rests, stale_points
from .bone_shapes import main_children, skeleton_shapes
from .capture_frames import frames_object, load_frames
from .deform_nodes import bone_names, get_bind
from .modifiers import DEFORM, find_modifier
from .motion_store import kept_rests, kept_tree, stored_rig
from .skeleton_bones import JointBone, joint_bones

F64 = NDArray[np.float64]
TOLERANCE = 1e-4  # of the size: skin bones that are off by more were moved


@dataclass(frozen=True)
class RefitTask:
    """What the solver and then the armature need; plain data.

    rig : as it was; positions : (F, N, 3) of its frames, None where the capture is gone
    edited : the corrected skeleton; bones : J names of the bones of its joints, "" for ends
    seen : the joints' bones as they were read
    space : (4, 4) similarity from the rig's axes to the armature's
    skin : rest matrices (4, 4) in armature space by index, and names, that skin bones are to have
    notes : one sentence each
    """

    rig: Rig
    positions: NDArray[np.float32] | None
    edited: EditedSkeleton
    bones: tuple[str, ...]
    seen: tuple[JointBone, ...]
    space: F64
    skin: dict[int, tuple[str, F64]]
    notes: tuple[str, ...]


def read_refit(object: bpy.types.Object, armature: bpy.types.Object) -> RefitTask:
    """Read what was edited, the armature out of Edit Mode.

    Raises
    ------
    RigError : one sentence: no stored motion, a skeleton that is none, a transform applied to splats only,
        or skin bones that were moved all over the place
    """
    if (stale := stale_points(object)) is not None:
        raise RigError(stale)
    rig, notes = stored_rig(object, armature), []
    space = skin_space(armature)
    upright = object_to_rig(object, armature)
    if np.abs(upright - np.eye(4)).max() > 1e-5:
        rest = apply_affine(upright, rig.rest.astype(np.float64))
        rig = replace(rig, rest=np.ascontiguousarray(rest, np.float32))
    positions = _captured(object, rig, upright)
    if positions is None:
        notes.append("The capture's frames are gone, so the poses were solved from the rig's own replay.")
    seen = joint_bones(armature)
    edited, names = edited_skeleton(rig, seen, armature, np.linalg.inv(space))
    return RefitTask(
        rig, positions, edited, names, tuple(seen), space, _skin_bones(object, armature, space), tuple(notes)
    )


def skin_space(armature: bpy.types.Object) -> F64:
    """Return the similarity (4, 4) from the rig's axes to those of the armature, told by its skin bones.

    It is the identity unless the armature's transform was applied. Skin bones that were moved alone do not
    matter as long as most stand where they stood.

    Raises
    ------
    RigError : they do not tell
    """
    _, before = kept_rests(armature)
    now = _skin_rests(armature, before)
    known = sorted(before.keys() & now.keys())
    if not known:
        raise RigError(f"'{armature.name}' has lost all its skin bones; undo that, or build the rig again")
    old, new = np.array([before[b] for b in known]), np.array([now[b] for b in known])
    size = 1 + np.abs(old[:, :3, 3]).max()
    still = (np.abs(new - old) <= TOLERANCE * size).all(axis=(1, 2))
    if 2 * still.sum() >= len(known):
        return np.eye(4)
    applied = fit_similarity(old, new)
    if applied is None:
        raise RigError(
            f"Many skin bones of '{armature.name}' were moved, and splats follow them; undo that, or build "
            "the rig again"
        )
    return applied


def edited_skeleton(
    rig: Rig, seen: list[JointBone], armature: bpy.types.Object, to_rig: F64
) -> tuple[EditedSkeleton, tuple[str, ...]]:
    """The corrected skeleton of bones as they stand, with ends where chains end, and the bones' names (J).

    Parameters
    ----------
    to_rig : (4, 4) from the armature's axes to the rig's

    Raises
    ------
    RigError : the bones are no skeleton
    """
    _check_pieces(armature, seen)
    learned, _ = kept_rests(armature)
    origins = _origins(seen, learned, np.linalg.inv(to_rig))
    place = {bone.name: k for k, bone in enumerate(seen)}
    names = [bone.name for bone in seen]
    parents = [place.get(bone.parent, -1) for bone in seen]
    heads = [apply_affine(to_rig, bone.head[None])[0] for bone in seen]
    ends = _Ends(rig, seen, origins, parents, kept_tree(armature), learned, to_rig)
    for name, parent, position, origin in ends.found():
        names.append(_free_name(name, names))
        parents.append(parent)
        heads.append(position)
        origins.append(origin)
    is_end = np.arange(len(names)) >= len(seen)
    edited = EditedSkeleton.make(rig, names, parents, np.array(heads), origins, is_end)
    bones = tuple(name if name in place else "" for name in edited.names)
    return edited, bones


def _check_pieces(armature: bpy.types.Object, seen: list[JointBone]) -> None:
    roots = [bone.name for bone in seen if not bone.parent]
    if not seen:
        raise RigError(f"'{armature.name}' has no joints left; undo that, or build the rig again")
    if len(roots) > 1:
        shown = ", ".join(f"'{name}'" for name in roots[:4]) + (" ..." if len(roots) > 4 else "")
        raise RigError(
            f"The skeleton of '{armature.name}' falls into {len(roots)} pieces, as {shown} hang on no joint; "
            "parent all but one in Edit Mode (Ctrl+P), or move controls of your own out of the collection "
            "'Skeleton'"
        )


def _origins(seen: list[JointBone], learned: dict[int, F64], to_armature: F64) -> list[int]:
    """Which joint each bone is: of copies the one that stands nearest to it, the others are new."""
    origins = [-1] * len(seen)
    for joint, rest in learned.items():
        claims = [k for k, bone in enumerate(seen) if bone.index == joint]
        if claims:
            head = apply_affine(to_armature, rest[None, :3, 3])[0]
            # Halves of a subdivided bone start at the head, copies of a moved one lie apart.
            nearest = min(claims, key=lambda k: (round(np.linalg.norm(seen[k].head - head), 9), k))
            origins[nearest] = joint
    return origins


@dataclass
class _Ends:
    """The ends of chains: joints that have no bone, tails of bones without children."""

    rig: Rig
    seen: list[JointBone]
    origins: list[int]
    parents: list[int]
    tree: dict[int, tuple[int, float]]
    learned: dict[int, F64]
    to_rig: F64

    def found(self) -> Iterable[tuple[str, int, F64, int]]:
        """Yield (name, parent among the bones, position, origin) of every end."""
        rig, now = self.rig, {origin: k for k, origin in enumerate(self.origins) if origin >= 0}
        childless = set(range(len(self.seen))) - set(self.parents)
        main, shapes = main_children(rig), skeleton_shapes(rig)
        boneless = [j for j in range(rig.joint_count) if j not in self.learned]
        ended = set()
        for joint in boneless:
            above = int(rig.joint_parents[joint])
            if above not in now:
                continue
            k, position = now[above], rig.joint_positions[joint]
            if main[above] == joint:  # it was the tail of the bone
                if k not in childless:
                    continue
                tail = apply_affine(self.to_rig, self.seen[k].tail[None])[0]
                ended.add(k)
                if not self._same(tail, shapes[above].tail):
                    position = tail
            yield rig.joint_names[joint], k, position, joint
        for k in sorted(childless - ended):
            if not self._stays_bare(k):
                tail = apply_affine(self.to_rig, self.seen[k].tail[None])[0]
                yield f"{self.seen[k].name}.end", k, tail, -1

    def _same(self, one: F64, other: F64) -> bool:
        return bool(np.abs(one - other).max() <= 1e-5 * diagonal(self.rig.rest))

    def _stays_bare(self, k: int) -> bool:
        """Whether a bone was a joint without children, and may stay one: all joints are still given ones."""
        rig, joint = self.rig, self.origins[k]
        if joint < 0 or (rig.joint_parents == joint).any():
            return False
        given = rig.joint_bind is not None and all(
            o >= 0 and rig.joint_names[o] == bone.name
            for o, bone in zip(self.origins, self.seen, strict=True)
        )
        return given or bool((rig.bone_joints == joint).any())


def _free_name(name: str, taken: list[str]) -> str:
    free, number = name, 0
    while free in taken:
        number += 1
        free = f"{name}.{number:03d}"
    return free


def _skin_rests(armature: bpy.types.Object, before: dict[int, F64]) -> dict[int, F64]:
    """Rest matrices of the skin bones that are there, by index; of copies the one nearest to where it was."""
    return {b: np.array(bone.matrix_local, np.float64) for b, bone in skin_bones(armature, before).items()}


def skin_bones(armature: bpy.types.Object, before: dict[int, F64]) -> dict[int, bpy.types.Bone]:
    """Return the skin bones that are there by index; of copies the one nearest to where it was."""
    found: dict[int, bpy.types.Bone] = {}
    for bone in armature.data.bones:  # pyright: ignore[reportAttributeAccessIssue]
        index = int(bone.get(SKIN_BONE, -1))
        if index not in before:
            continue
        known = found.get(index)
        if known is None or _away(bone, before[index]) < _away(known, before[index]):
            found[index] = bone
    return found


def _away(bone: bpy.types.Bone, rest: F64) -> float:
    return float(np.abs(np.array(bone.matrix_local) - rest).max())


def _skin_bones(
    object: bpy.types.Object, armature: bpy.types.Object, space: F64
) -> dict[int, tuple[str, F64]]:
    """Name and rest matrix that each skin bone is to have."""
    _, before = kept_rests(armature)
    named = bone_names(_deformer_group(object))
    there = skin_bones(armature, before)
    scale = np.cbrt(np.linalg.det(space[:3, :3]))
    wanted = {}
    for b, rest in before.items():
        matrix = space @ rest
        matrix[:3, :3] /= scale
        name = there[b].name if b in there else named[b] if b < len(named) else f"skin_{b + 1:03d}"
        wanted[b] = name, matrix
    return wanted


def object_to_rig(object: bpy.types.Object, armature: bpy.types.Object) -> F64:
    """Return the map (4, 4) from the object's space as it is now to the rig's axes.

    The bind leads to the armature as it stood when it was bound last, its skin bones of then to the rig.
    """
    _, before = kept_rests(armature)
    bound = bind_skin_rests(object)
    bind = get_bind(_deformer_group(object))
    if len(bound) != len(before):
        return bind
    applied = fit_similarity(np.array([before[b] for b in sorted(before)]), bound)
    return bind if applied is None else np.linalg.inv(applied) @ bind


def _deformer_group(object: bpy.types.Object) -> bpy.types.NodeTree:
    modifier = find_modifier(object, DEFORM)
    if modifier is None:
        raise RigError(f"'{object.name}' is not rigged any more; build the rig again")
    return modifier.node_group  # pyright: ignore[reportReturnType]


def _captured(object: bpy.types.Object, rig: Rig, upright: F64) -> NDArray[np.float32] | None:
    """The points (F, N, 3) of the rig's frames in its axes; None where they are not there any more."""
    if frames_object(object) is None:
        return None
    try:
        frames = load_frames(object)
    except CaptureError as error:
        raise RigError(str(error)) from error
    if rig.frames.max() >= len(frames.positions) or not frames.frame_valid[rig.frames].all():
        return None
    positions = frames.positions[rig.frames]
    if np.abs(upright - np.eye(4)).max() > 1e-5:
        positions = np.stack(
            [apply_affine(upright, frame.astype(np.float64)).astype(np.float32) for frame in positions]
        )
    return positions
