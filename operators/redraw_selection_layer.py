"""A layer's shape drawn anew in the view it was drawn in."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import bpy

from ..core.errors import GaussiAnimateError, SelectionError
from ..core.selection.layer import SelectionLayer
from ..core.selection.shapes import Stroke
from ..gaussianimate_addon.subject import active_splats
from ..gaussianimate_addon.weights.gesture_path import GesturePath
from ..gaussianimate_addon.weights.gesture_settings import DESCRIPTIONS
from ..gaussianimate_addon.weights.gesture_view import GestureView
from ..gaussianimate_addon.weights.gestures import check_rest, make_shape, surface_below
from ..gaussianimate_addon.weights.layer_list import active_layer
from ..gaussianimate_addon.weights.layers import read_layers, write_layers
from ..gaussianimate_addon.weights.reopen import find_viewport, restore_view, show_view, view_state
from ..gaussianimate_addon.weights.unselected import nothing_selected
from ..gaussianimate_addon.weights.views import viewport
from .add_selection_layer import Front, read_points
from .edit_layers import NeedsLayer
from .reports import reported
from .selection_gesture import DrawsSelection


class GAUSSIANIMATE_OT_redraw_selection_layer(DrawsSelection, NeedsLayer, bpy.types.Operator):
    """Look from where the layer was drawn, and draw its shape anew or change its numbers"""

    bl_idname = "gaussianimate.redraw_selection_layer"
    bl_label = "Redraw"
    bl_options = {"REGISTER", "UNDO"}
    takes_operation = False

    if TYPE_CHECKING:
        points: str
        smoothness: float
        strength: float
        radius: float
        drawn_radius: float
    else:
        points: bpy.props.StringProperty(
            name="Points",
            description="JSON rows of x and y in pixels of the layer's view, as for Add Selection Layer; "
            "empty: the shape it has",
            options={"HIDDEN", "SKIP_SAVE"},  # else the next Redraw took them for given
        )
        smoothness: bpy.props.FloatProperty(
            name="Smoothness", description=DESCRIPTIONS["smoothness"], default=40.0, min=0.0
        )
        strength: bpy.props.FloatProperty(
            name="Strength", description=DESCRIPTIONS["strength"], default=1.0, min=0.0, max=1.0
        )
        radius: bpy.props.FloatProperty(name="Radius", description=DESCRIPTIONS["radius"], default=50, min=0)
        drawn_radius: bpy.props.FloatProperty(options={"HIDDEN", "SKIP_SAVE"})

    def invoke(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        """Show the layer in its view and wait for the mouse; run where points were given."""
        if self.points:
            return self.execute(context)
        object = active_splats(context)
        assert object is not None
        try:
            check_rest(object)
            space, region, view = find_viewport(context)
            _, layer = active_layer(object)
            self._old = layer
            self._before = view_state(space, view)
            self._pixels = show_view(context, object, layer.viewpoint)
        except GaussiAnimateError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        self.shape = layer.shape.kind.upper()
        self.smoothness, self.strength = layer.feather.width, layer.strength
        if isinstance(layer.shape, Stroke) and layer.shape.radii:
            self.radius = max(layer.shape.radii) / abs(self._pixels.scale[1])
        self._old_radius = self.radius
        self._begin(context, object, region, GestureView(object, layer.viewpoint, self._pixels), event)
        return {"RUNNING_MODAL"}

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Give the layer its new shape and numbers."""
        object = active_splats(context)
        assert object is not None
        return reported(
            self,
            lambda: self._exchange(context, object),
            lambda: nothing_selected(object, active_layer(object)[1]),
        )

    def _exchange(self, context: bpy.types.Context, object: bpy.types.Object) -> tuple[str, ...]:
        index, _ = active_layer(object)
        layer, stack = self._layer(context, object), read_layers(object)
        layers = (*stack.layers[:index], layer, *stack.layers[index + 1 :])
        return write_layers(object, replace(stack, layers=layers))

    def _layer(
        self, context: bpy.types.Context, object: bpy.types.Object, front: Front | None = None
    ) -> SelectionLayer:
        """Return the active layer with the shape that was drawn; numbers that nobody gave are its own."""
        _, layer = active_layer(object)
        if not any(self.properties.is_property_set(name) for name in ("points", "smoothness", "strength")):
            raise SelectionError("Draw the new shape in a 3D viewport, or give its points")
        feather, strength, shape = layer.feather, layer.strength, layer.shape
        if self.properties.is_property_set("smoothness"):
            feather = replace(feather, width=self.smoothness)
        if self.properties.is_property_set("strength"):
            strength = self.strength
        if self.points:
            drawn = read_points(self.points)
            shape = make_shape(shape.kind.upper(), drawn, self.radius, drawn_radius=self.drawn_radius)
        drawn = replace(layer, shape=shape, feather=feather, strength=strength)
        if layer.front is None or (shape, feather) == (layer.shape, layer.feather):
            return drawn
        if front is not None:
            found = front(object, drawn)
        else:
            found = surface_below(object, layer.viewpoint, shape, feather)
        if found is not None:  # no shallower than it was
            deeper = max(found.thickness, layer.front.thickness), max(found.falloff, layer.front.falloff)
            found = replace(found, thickness=deeper[0], falloff=deeper[1])
        return replace(drawn, front=found)

    def _check(self, context: bpy.types.Context) -> None:
        """Raise SelectionError, too, where the layer is not the one whose view is shown."""
        super()._check(context)
        object = active_splats(context)
        assert object is not None
        if active_layer(object)[1] != self._old:
            raise SelectionError("The layer that was redrawn was changed meanwhile; redraw it again")

    def _update(self, context: bpy.types.Context, event: bpy.types.Event) -> None:
        """Show what would be selected: a stroke that is not drawn anew follows its radius."""
        object = active_splats(context)
        if self._path.empty and object is not None and (self.points or self.radius != self._old_radius):
            shape = active_layer(object)[1].shape
            if isinstance(shape, Stroke):
                grown = self.radius / self._old_radius
                rows = [(*at, radius * grown) for at, radius in zip(shape.points, shape.radii, strict=True)]
                self.points, self.drawn_radius = json.dumps(rows), self.radius
        super()._update(context, event)

    def _finish(self, context: bpy.types.Context) -> set[str]:
        """Keep waiting after a click without a drag; Enter keeps the shape there is."""
        if self._path.empty:
            self._end(context)
            return self.execute(context)
        if self._path.is_drawn():
            return super()._finish(context)
        self._path, self.points = GesturePath(self.shape), ""
        return {"RUNNING_MODAL"}

    def _drop(self, context: bpy.types.Context) -> None:
        """Leave all as it was, the view too."""
        self._end(context)
        found = viewport(context)
        if found is not None:
            space, _, view = found
            restore_view(space, view, self._before)

    def _waits(self) -> str:
        if self._pressed:
            return "Redraw"
        return "Drag: New Shape, Enter: Keep the Shape" if self._path.empty else super()._waits()
