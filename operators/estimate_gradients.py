"""Gradients for weights that another tool has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import bpy

from ..core.errors import MissingDependencyError
from ..core.progress import Progress
from ..core.skinning.skin import Skin
from ..gaussianimate_addon.job import JobOperator
from ..gaussianimate_addon.libraries import missing_library
from ..gaussianimate_addon.subject import active_splats, find_object
from ..gaussianimate_addon.weights.estimating import (
    EstimateTask,
    Layers,
    lacks_weights,
    read_weights,
    store_weights,
    with_gradients,
)
from .add_selection_layer import NeedsBound

LAYERS = (
    ("KEEP", "Keep Layers", "Estimate for the weights that layers start from, and let layers act on them"),
    ("APPLY", "Apply Layers", "Keep the weights as they are now, whoever made them; the layers go"),
)


class GAUSSIANIMATE_OT_estimate_gradients(NeedsBound, JobOperator, bpy.types.Operator):
    """Make weights that another tool has changed sum to 1, and estimate their gradients anew"""

    bl_idname = "gaussianimate.estimate_gradients"
    bl_label = "Estimate Gradients"
    bl_options = {"REGISTER"}

    if TYPE_CHECKING:
        layers: str
    else:
        layers: bpy.props.EnumProperty(name="Layers", items=LAYERS, options={"SKIP_SAVE"})

    @classmethod
    def unready(cls, context: bpy.types.Context) -> str | None:
        """Splats of this file with weights, bound to an armature, must be active."""
        if (reason := super().unready(context)) is not None:
            return reason
        object = active_splats(context)
        return "The splats have no weights" if object is None or lacks_weights(object) else None

    def prepare(self, context: bpy.types.Context) -> EstimateTask:
        """Read the weights."""
        object = active_splats(context)
        assert object is not None
        if reason := missing_library("scipy", "Estimating gradients"):
            raise MissingDependencyError(reason)
        self._object = object.session_uid, object.name
        self._task = read_weights(object, cast(Layers, self.layers))
        return self._task

    @staticmethod
    def work(state: EstimateTask, progress: Progress) -> Skin:
        """Estimate."""
        return with_gradients(state, progress)

    def apply(self, context: bpy.types.Context, result: Skin) -> None:
        """Store them."""
        object = find_object(*self._object)
        for note in store_weights(object, self._task, result):
            self.report({"INFO"}, note)
        self.report({"INFO"}, f"'{object.name}': gradients of {len(result):,} splats estimated")
