"""The selection layers of splats: a document in the .blend, and the weights that follow from it.

The layers lie as JSON in a custom property of the PointCloud, beside the weights they make; so saving, undo,
copying and appending take both along. What the layers start from (heat, vertex groups, a capture) is kept in
attributes named ``base:...`` while there are layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import bpy
import numpy as np
from numpy.typing import NDArray

from ...core.errors import SelectionError
from ...core.selection.layer import LayerStack, SelectionLayer
from ...core.selection.memory import Memory
from ...core.selection.skin import stack_to_skin
from ...core.selection.viewpoint import Viewpoint
from ...core.skinning.skin import MAX_INFLUENCES, STATIC, Skin
from ..attributes import read_attribute, splats
from ..skin_attributes import BASE, SKIN, influence_count, read_skin, remove_skin, write_skin

LAYERS = "gaussianimate_layers"  # custom property of the splats
MEMORY = Memory()  # what layers select of the splats that were evaluated last; goes by values

REFUSED: dict[int, str] = {}  # by session number of splats: why the list took a number not, till it takes one


def has_layers(object: bpy.types.Object) -> bool:
    """Whether the splats were bound so that layers can be drawn on them (there may be none yet)."""
    return LAYERS in splats(object)


def read_layers(object: bpy.types.Object) -> LayerStack:
    """Return the layers of an object's splats.

    Raises
    ------
    SelectionError : it has none, or they cannot be read
    """
    stack = stored_stack(splats(object))
    if stack is None:
        raise SelectionError(f"'{object.name}' is bound to no armature yet; bind it to one first")
    return stack


def stored_stack(data: bpy.types.PointCloud) -> LayerStack | None:
    """Return the layers kept with splats, None where they were never bound for layers.

    Raises
    ------
    SelectionError : they cannot be read
    """
    text = data.get(LAYERS)
    return parsed(text) if isinstance(text, str) else None


@lru_cache(maxsize=8)
def parsed(text: str) -> LayerStack:
    """Return the layers of a document as they are kept; panels ask at every redraw."""
    return LayerStack.from_json(text)


def write_layers(object: bpy.types.Object, stack: LayerStack, evaluate: bool = True) -> tuple[str, ...]:
    """Store the layers and let the weights follow.

    Parameters
    ----------
    evaluate : False where nothing that weights depend on has changed

    Returns
    -------
    notes : one sentence each on what was cut, for a report

    Raises
    ------
    SelectionError : the weights that the layers start from do not fit them; nothing is changed then
    """
    from .layer_list import fill_list

    data = splats(object)
    start = _new_start(data, stack)
    skin = _evaluated(data, stack, start) if evaluate else None
    if start is not None:
        write_skin(data, start, BASE)
    data[LAYERS] = stack.to_json()
    fill_list(object, stack)
    REFUSED.pop(data.session_uid, None)
    return () if skin is None else _store(data, stack, skin)


def _new_start(data: bpy.types.PointCloud, stack: LayerStack) -> Skin | None:
    """Return the weights there are where layers are about to start from them; None for splats without any."""
    if not stack.layers or influence_count(data, BASE) or not influence_count(data):
        return None
    before = data.get(LAYERS)
    if before is not None and parsed(before).layers:
        return None
    skin = read_skin(data)
    return skin if ((skin.indices != STATIC) & (skin.weights > 0)).any() else None


def restart_layers(object: bpy.types.Object, names: Sequence[str]) -> tuple[str, ...]:
    """Let layers act on new starting weights, which were just written as the skin; returns notes.

    Parameters
    ----------
    names : all bones, by their numbers; layers of others go, which a note says
    """
    data, fresh = splats(object), LayerStack(tuple(names))
    before = read_layers(object).layers if has_layers(object) else ()
    kept = tuple(layer for layer in before if layer.bone in fresh.bones)
    gone = dropped_note([layer for layer in before if layer.bone not in fresh.bones])
    forget_layers(object)
    write_skin(data, padded(read_skin(data)), SKIN)
    write_layers(object, fresh, evaluate=False)
    if not kept:
        return gone
    return (*gone, *write_layers(object, replace(fresh, layers=kept)))


def dropped_note(layers: Sequence[SelectionLayer]) -> tuple[str, ...]:
    """Return one sentence on layers that went because their bones did, none for no layers."""
    if not layers:
        return ()
    bones = ", ".join(f"'{name}'" for name in dict.fromkeys(layer.bone for layer in layers))
    what = "1 selection layer" if len(layers) == 1 else f"{len(layers)} selection layers"
    return (f"Dropped {what} of bones that the armature does not have: {bones}",)


def forget_layers(object: bpy.types.Object) -> None:
    """Remove the layers; the weights stay as they are."""
    from .layer_list import fill_list

    data = splats(object)
    remove_skin(data, BASE)
    if LAYERS in data:
        del data[LAYERS]
        fill_list(object, LayerStack(()))


def restore_text(object: bpy.types.Object, text: str | None) -> None:
    """Put back the document as it was, None for none; weights stay as they are."""
    from .layer_list import fill_list

    if text is None:
        if LAYERS in splats(object):
            del splats(object)[LAYERS]
            fill_list(object, LayerStack(()))
        return
    splats(object)[LAYERS] = text
    fill_list(object, parsed(text))


def transform_layers(object: bpy.types.Object, matrix: NDArray[np.float64]) -> None:
    """After the splats were moved by ``matrix`` (4, 4): let the views of layers see them as before."""
    if not has_layers(object):
        return
    stack, inverse = read_layers(object), np.linalg.inv(matrix)
    layers = tuple(
        replace(
            layer,
            viewpoint=Viewpoint(
                np.array(layer.viewpoint.view) @ inverse,  # type: ignore[arg-type]
                layer.viewpoint.projection,
                layer.viewpoint.window,
            ),
        )
        for layer in stack.layers
    )
    splats(object)[LAYERS] = replace(stack, layers=layers).to_json()


def update_weights(object: bpy.types.Object) -> tuple[str, ...]:
    """Evaluate the layers on all splats and store weights with their exact gradients; return notes."""
    data, stack = splats(object), read_layers(object)
    return _store(data, stack, _evaluated(data, stack))


def _evaluated(data: bpy.types.PointCloud, stack: LayerStack, start: Skin | None = None) -> Skin:
    """Return what layers amount to on all splats; ``start`` stands in for weights that are not kept yet."""
    if start is None and influence_count(data, BASE):
        start = read_skin(data, BASE)
    if not stack.layers:
        return empty_skin(len(data.points)) if start is None else start
    positions = read_attribute(data, "position").astype(np.float64)
    return stack_to_skin(stack, positions, base=start, memory=MEMORY)


def _store(data: bpy.types.PointCloud, stack: LayerStack, skin: Skin) -> tuple[str, ...]:
    """Write the weights; what layers started from goes with the last of them. Returns notes."""
    if not stack.layers:
        remove_skin(data, BASE)
    write_skin(data, padded(skin), SKIN)
    data.update_tag()
    return skin.notes


def empty_skin(count: int) -> Skin:
    """Return the skin of splats that no bone holds."""
    one = (count, 1)
    return Skin(np.full(one, STATIC, np.int32), np.ones(one, np.float32), np.zeros((*one, 3), np.float32))


def padded(skin: Skin) -> Skin:
    """Return the skin with as many influences as there may be, so that deformers need not change."""
    lack = ((0, 0), (0, MAX_INFLUENCES - skin.influences))
    return Skin(
        np.pad(skin.indices, lack),
        np.pad(skin.weights, lack),
        np.pad(skin.gradients, (*lack, (0, 0))),
        skin.notes,
    )
