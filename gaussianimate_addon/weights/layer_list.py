"""The layers as a list that panels draw and numbers are edited in; the document stays the one truth.

Every line of the list reads its values from the document and writes them there, which evaluates the weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import bpy

from ...core.errors import SelectionError
from ...core.selection.layer import LayerStack, SelectionLayer
from ..armature import SKIN_BONE
from ..attributes import splats
from ..deformer import deformer_armature
from . import layer_values as values
from .layer_values import OPERATIONS, object_of
from .layers import REFUSED, has_layers, read_layers


class GaussianimateLayer(bpy.types.PropertyGroup):
    """One line: a window onto the layer at ``index`` in the document."""

    if TYPE_CHECKING:
        index: int
        title: str
        shown: bool
        smoothness: float
        strength: float
        operation: str
        curve: str
        through: bool
        depth: float
    else:
        index: bpy.props.IntProperty()
        title: bpy.props.StringProperty(name="Name", get=values.get_title, set=values.set_title)
        shown: bpy.props.BoolProperty(
            name="Acts",
            description="Whether the layer acts on the weights",
            get=values.get_shown,
            set=values.set_shown,
        )
        smoothness: bpy.props.FloatProperty(
            name="Smoothness",
            description="Width of the fade across the edge, pixels of the view it was drawn in",
            min=0.0,
            soft_max=400.0,
            get=values.get_smoothness,
            set=values.set_smoothness,
        )
        strength: bpy.props.FloatProperty(
            name="Strength",
            description="Weight where the selection is full",
            min=0.0,
            max=1.0,
            get=values.get_strength,
            set=values.set_strength,
        )
        operation: bpy.props.EnumProperty(
            name="Operation",
            items=[(name.upper(), name.title(), "") for name in OPERATIONS],
            get=values.get_operation,
            set=values.set_operation,
        )
        curve: bpy.props.EnumProperty(
            name="Fade",
            items=[("SMOOTHSTEP", "Smooth", "A continuous slope"), ("LINEAR", "Linear", "Fades evenly")],
            get=values.get_curve,
            set=values.set_curve,
        )
        through: bpy.props.BoolProperty(
            name="Through",
            description="Select through everything, not only the surface seen first",
            get=values.get_through,
            set=values.set_through,
        )
        depth: bpy.props.FloatProperty(
            name="Depth",
            description="Full so far behind the surface, and gone at twice that",
            subtype="DISTANCE",
            min=0.0,
            get=values.get_depth,
            set=values.set_depth,
        )


def _bone(shown: Any) -> str:
    return _active_bone(shown.id_data)


def _set_bone(shown: Any, value: str) -> None:
    _set_active_bone(shown.id_data, value)


def _line(shown: Any) -> int:
    """Return the line that was chosen, or the bone's last one where that is another bone's."""
    object = object_of(shown.id_data)
    own = [i for i, layer in enumerate(listed_layers(object)) if layer.bone == shown.bone]
    return shown.chosen if shown.chosen in own or not own else own[-1]


def _choose(shown: Any, index: int) -> None:
    shown.chosen = index


def _search_bones(shown: Any, context: bpy.types.Context, text: str) -> list[str]:
    """Return the bones that can hold splats; rigs for animators have many more."""
    data = _armature_data(shown.id_data)
    bones = [] if data is None else data.bones
    return [bone.name for bone in bones if holds_splats(bone) and text.lower() in bone.name.lower()]


def holds_splats(bone: bpy.types.Bone) -> bool:
    """Return whether layers can be drawn for a bone."""
    return bone.use_deform or SKIN_BONE in bone


class GaussianimateLayers(bpy.types.PropertyGroup):
    """The list, and the bone that layers are drawn for: the armature's active one."""

    if TYPE_CHECKING:
        lines: Any
        chosen: int
        active: int
        bone: str
    else:
        lines: bpy.props.CollectionProperty(type=GaussianimateLayer)
        chosen: bpy.props.IntProperty(options={"HIDDEN"})
        active: bpy.props.IntProperty(name="Active Layer", get=_line, set=_choose)
        bone: bpy.props.StringProperty(
            name="Bone",
            description="Bone that weights are drawn for",
            get=_bone,
            set=_set_bone,
            search=_search_bones,
        )


def layer_list(object: bpy.types.Object) -> GaussianimateLayers:
    """Return the list of an object's splats."""
    return cast("GaussianimateLayers", splats(object).gaussianimate_layer_list)  # pyright: ignore[reportAttributeAccessIssue]


def fill_list(object: bpy.types.Object, stack: LayerStack) -> None:
    """Let the list have one line a layer."""
    if not hasattr(splats(object), "gaussianimate_layer_list"):
        return  # scripts without the extension's properties
    lines = layer_list(object).lines
    while len(lines) > len(stack.layers):
        lines.remove(len(lines) - 1)
    while len(lines) < len(stack.layers):
        lines.add()
    for index, line in enumerate(lines):
        line.index = index


def choose_line(object: bpy.types.Object, index: int) -> None:
    """Make a line the active one."""
    if hasattr(splats(object), "gaussianimate_layer_list"):
        layer_list(object).active = index


def listed_layers(object: bpy.types.Object | None) -> tuple[SelectionLayer, ...]:
    """Return the layers there are to list: none without splats, or where they cannot be read."""
    if object is None or not has_layers(object) or unreadable(object):
        return ()
    return read_layers(object).layers


def unreadable(object: bpy.types.Object) -> str | None:
    """Return one sentence where there are layers that cannot be read, such as those of a later version."""
    try:
        if has_layers(object):
            read_layers(object)
    except SelectionError as error:
        return str(error)
    return None


def refused(object: bpy.types.Object) -> str | None:
    """Return one sentence where the last number that was set in the list was not taken."""
    return REFUSED.get(splats(object).session_uid)


def active_layer(object: bpy.types.Object) -> tuple[int, SelectionLayer]:
    """Return index and layer of the list's active line.

    Raises
    ------
    SelectionError : there is none
    """
    index = layer_list(object).active
    layers = listed_layers(object)
    if not 0 <= index < len(layers):
        raise SelectionError("Choose a layer in the list")
    return index, layers[index]


def _armature_data(data: Any) -> Any:
    object = object_of(data)
    armature = deformer_armature(object) if object is not None else None
    return None if armature is None else armature.data


def _active_bone(data: Any) -> str:
    bones = _armature_data(data)
    active = bones.bones.active if bones is not None else None
    return "" if active is None else active.name


def _set_active_bone(data: Any, name: str) -> None:
    bones = _armature_data(data)
    if bones is not None and name in bones.bones:
        bones.bones.active = bones.bones[name]


CLASSES = (GaussianimateLayer, GaussianimateLayers)


def register() -> None:
    """Add the list to splats."""
    for cls in CLASSES:
        bpy.utils.register_class(cls)
    bpy.types.PointCloud.gaussianimate_layer_list = bpy.props.PointerProperty(type=GaussianimateLayers)  # pyright: ignore[reportAttributeAccessIssue]


def unregister() -> None:
    """Undo :func:`register`."""
    del bpy.types.PointCloud.gaussianimate_layer_list  # pyright: ignore[reportAttributeAccessIssue]
    for cls in reversed(CLASSES):
        bpy.utils.unregister_class(cls)
