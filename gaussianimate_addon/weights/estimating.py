"""Gradients of weights that another tool has changed: estimated anew, as no formula says what they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import bpy
import numpy as np
from numpy.typing import NDArray

from ...core.errors import RigError, SelectionError
from ...core.progress import Progress, no_progress
from ...core.skinning.skin import Skin, make_skin
from ..armature import SKIN_BONE, indexed_bones
from ..attributes import read_attribute, splats
from ..deformer import deformer_armature
from ..skin_attributes import SKIN, influence_count, read_influences, write_skin
from .binding import weights_kept
from .layers import LAYERS, forget_layers, has_layers, padded, read_layers, restart_layers
from .starting import standing_kind

Layers = Literal["KEEP", "APPLY"]


@dataclass(frozen=True)
class EstimateTask:
    """Weights without gradients.

    positions : (N, 3) of the splats, object space
    indices, weights : (N, K) bones, and how strongly they hold splats
    bones : names of the bones, by their numbers
    layers : "APPLY" drops the layers, whose work is among the weights
    document : the layers as they were
    """

    positions: NDArray[np.float64]
    indices: NDArray[np.int32]
    weights: NDArray[np.float32]
    bones: tuple[str, ...]
    layers: Layers
    document: str | None


def read_weights(object: bpy.types.Object, layers: Layers = "KEEP") -> EstimateTask:
    """Read the weights whose gradients are to be estimated.

    Parameters
    ----------
    layers : "KEEP" reads what layers start from, "APPLY" what they and others have made of it

    Raises
    ------
    RigError, SelectionError : there are none, they are damaged, or layers made them from nothing
    """
    armature, data = deformer_armature(object), splats(object)
    if armature is None:
        raise RigError(f"'{object.name}' is bound to no armature yet; bind it to one first")
    stack = read_layers(object) if has_layers(object) else None
    kind = SKIN if layers == "APPLY" else standing_kind(object)
    if kind == SKIN and layers == "KEEP" and stack is not None and stack.layers:
        raise SelectionError(
            f"All weights of '{object.name}' are made by its selection layers, whose gradients are exact; "
            "to keep what another tool changed, choose Apply Layers"
        )
    names = [bone.name for bone in indexed_bones(armature, SKIN_BONE)] if stack is None else stack.bones
    positions = read_attribute(data, "position").astype(np.float64)
    return EstimateTask(positions, *read_influences(data, kind), tuple(names), layers, data.get(LAYERS))


def with_gradients(task: EstimateTask, progress: Progress = no_progress) -> Skin:
    """Make the weights sum to 1 and estimate their gradients (no bpy)."""
    return make_skin(
        task.positions,
        task.indices,
        task.weights,
        bone_count=len(task.bones),
        max_influences=task.indices.shape[1],
        progress=progress,
    )


def store_weights(object: bpy.types.Object, task: EstimateTask, skin: Skin) -> tuple[str, ...]:
    """Let the splats have them, and layers act on them; returns notes.

    Raises
    ------
    RigError : splats or layers are not those that were read; all is as before then
    """
    data, armature = splats(object), deformer_armature(object)
    if len(data.points) != len(skin) or data.get(LAYERS) != task.document or armature is None:
        raise RigError(f"The splats of '{object.name}' changed meanwhile; estimate again")
    with weights_kept(object, armature):
        if not has_layers(object):
            write_skin(data, skin, SKIN)
            data.update_tag()
            return skin.notes
        count = len(read_layers(object).layers) if task.layers == "APPLY" else 0
        if count:
            forget_layers(object)
        write_skin(data, padded(skin), SKIN)
        notes = restart_layers(object, task.bones)
    applied = (f"{count} selection layer{'s'[: count != 1]} applied",) if count else ()
    return (*skin.notes, *applied, *notes)


def lacks_weights(object: bpy.types.Object) -> bool:
    """Return whether splats have no weights."""
    return not influence_count(splats(object))
