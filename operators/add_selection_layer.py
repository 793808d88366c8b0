"""A soft selection as a layer of a bone's weights, for scripts and pipelines."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import bpy

from ..core.errors import SelectionError
from ..core.selection.compose import Operation
from ..core.selection.depth import FrontSurface
from ..core.selection.feather import Curve, Feather
from ..core.selection.layer import SelectionLayer
from ..gaussianimate_addon.bind import applied_reason
from ..gaussianimate_addon.deformer import deformer
from ..gaussianimate_addon.job import Reasoned
from ..gaussianimate_addon.subject import active_splats, linked_reason
from ..gaussianimate_addon.weights.gesture_settings import CURVES, DESCRIPTIONS, OPERATIONS
from ..gaussianimate_addon.weights.gestures import add_layer, layer_bone, make_shape, surface_below
from ..gaussianimate_addon.weights.layer_depth import with_depth
from ..gaussianimate_addon.weights.layers import read_layers
from ..gaussianimate_addon.weights.unselected import nothing_selected
from ..gaussianimate_addon.weights.views import viewpoint_of
from .reports import reported
from .selection_gesture import DrawsNewSelection

SHAPES = (
    ("RECTANGLE", "Rectangle", "Between two opposite corners"),
    ("ELLIPSE", "Ellipse", "In the box between two opposite corners"),
    ("LASSO", "Lasso", "Within an outline; where it crosses itself, every other part"),
    ("STROKE", "Brush", "Along a path"),
)
BIND_FIRST = "Bind the splats to an armature first"
Front = Callable[[bpy.types.Object, SelectionLayer], FrontSurface | None]


class NeedsBound(Reasoned):
    """Mix-in for operators on splats that an armature deforms."""

    @classmethod
    def unready(cls, context: bpy.types.Context) -> str | None:
        """Splats of this file, bound to an armature, must be active."""
        object = active_splats(context)
        if object is None:
            return "Select Gaussian splats or their armature"
        if reason := linked_reason(object, object.data):
            return reason
        return applied_reason(object) if deformer(object) is not None else BIND_FIRST


class GAUSSIANIMATE_OT_add_selection_layer(DrawsNewSelection, NeedsBound, bpy.types.Operator):
    """Draw a soft selection for the active bone's weights"""

    bl_idname = "gaussianimate.add_selection_layer"
    bl_label = "Add Selection Layer"
    bl_options = {"REGISTER", "UNDO"}

    if TYPE_CHECKING:
        bone: str
        shape: str
        points: str
        view: str
        smoothness: float
        strength: float
        operation: str
        radius: float
        drawn_radius: float
        angle: float
        curve: str
        through: bool
        depth: float
        name: str
    else:
        bone: bpy.props.StringProperty(
            name="Bone", description="Deform bone; empty: the active one", options={"SKIP_SAVE"}
        )
        shape: bpy.props.EnumProperty(name="Shape", items=SHAPES)
        points: bpy.props.StringProperty(
            name="Points",
            description="JSON rows of x and y in pixels, y up (brush: also the radius; lasso: or several "
            "outlines, lists of rows)",
            options={"HIDDEN", "SKIP_SAVE"},
        )
        view: bpy.props.StringProperty(
            name="View",
            description="Name of a camera, or JSON of a viewpoint; empty: the 3D viewport",
            options={"HIDDEN", "SKIP_SAVE"},
        )
        smoothness: bpy.props.FloatProperty(
            name="Smoothness", description=DESCRIPTIONS["smoothness"], default=40.0, min=0.0
        )
        strength: bpy.props.FloatProperty(
            name="Strength", description=DESCRIPTIONS["strength"], default=1.0, min=0.0, max=1.0
        )
        operation: bpy.props.EnumProperty(name="Operation", items=OPERATIONS)
        radius: bpy.props.FloatProperty(name="Radius", description=DESCRIPTIONS["radius"], default=50, min=0)
        drawn_radius: bpy.props.FloatProperty(
            name="Drawn Radius",
            description="Radius that points with radii of their own were drawn with; they follow where it "
            "changes. 0: they stay",
            options={"HIDDEN", "SKIP_SAVE"},
        )
        angle: bpy.props.FloatProperty(name="Angle", description="Turns the shape", subtype="ANGLE")
        curve: bpy.props.EnumProperty(name="Fade", items=CURVES)
        through: bpy.props.BoolProperty(name="Through", description=DESCRIPTIONS["through"], default=True)
        depth: bpy.props.FloatProperty(
            name="Depth",
            description=DESCRIPTIONS["depth"],
            subtype="DISTANCE",
            min=0.0,
        )
        name: bpy.props.StringProperty(name="Name", options={"SKIP_SAVE"})

    def draw(self, context: bpy.types.Context) -> None:
        """The numbers that this shape has, for Adjust Last Operation."""
        self.layout.use_property_split, self.layout.use_property_decorate = True, False
        numbers = ["shape", "operation", "strength", "smoothness", "curve", "through"]
        numbers += [] if self.through else ["depth"]
        numbers += {"STROKE": ["radius"], "LASSO": []}.get(self.shape, ["angle"])
        for name in (*numbers, "bone", "name"):
            self.layout.prop(self, name)

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Add the layer."""
        object = active_splats(context)
        assert object is not None
        return reported(
            self,
            lambda: add_layer(object, self._layer(context, object)),
            lambda: nothing_selected(object, read_layers(object).layers[-1]),
        )

    def _layer(
        self, context: bpy.types.Context, object: bpy.types.Object, front: Front | None = None
    ) -> SelectionLayer:
        """Return the layer of the properties; ``front`` finds the surface in place of `surface_below`."""
        bone, view = layer_bone(object, self.bone), viewpoint_of(self.view, object, context)
        points = read_points(self.points)
        shape = make_shape(self.shape, points, self.radius, self.angle, self.drawn_radius)
        feather = Feather(self.smoothness, cast(Curve, self.curve.lower()))
        operation = cast(Operation, self.operation.lower())
        layer = SelectionLayer(bone, view, shape, feather, self.strength, operation, name=self.name)
        if self.through:
            return layer
        found = surface_below(object, view, shape, feather) if front is None else front(object, layer)
        return replace(layer, front=with_depth(found, self.depth))

    def _try_bone(self, object: bpy.types.Object) -> None:
        layer_bone(object, self.bone)


def read_points(text: str) -> Any:
    """Return points given as JSON text.

    Raises
    ------
    SelectionError : it is none
    """
    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        raise SelectionError("The points of a selection are JSON, as in [[10, 20], [200, 90]]") from None
