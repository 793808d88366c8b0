"""The modal half of drawing a selection: mouse, wheel and keys change the layer before it is added."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import bpy

from ..core.errors import GaussiAnimateError
from ..core.selection.layer import SelectionLayer
from ..gaussianimate_addon.subject import active_splats
from ..gaussianimate_addon.weights.gesture_settings import REMEMBERED, gesture_settings
from ..gaussianimate_addon.weights.gesture_view import GestureView
from ..gaussianimate_addon.weights.gestures import FEWEST, check_rest, region_viewpoint

APART = 3.0  # pixels between the points of a path
SMOOTHER, WEAKER = 1.15, 0.05  # what one notch of the wheel does
WHEEL = {"WHEELUPMOUSE": 1, "WHEELDOWNMOUSE": -1, "RIGHT_BRACKET": 1, "LEFT_BRACKET": -1}
DIGITS = {
    name: str(digit)
    for digit, word in enumerate("ZERO ONE TWO THREE FOUR FIVE SIX SEVEN EIGHT NINE".split())
    for name in (word, f"NUMPAD_{digit}")
}


class DrawsSelection:
    """Mix-in for the operator that adds a selection layer: invoked with the mouse, it is drawn first.

    The operator's properties hold the gesture, so that Adjust Last Operation can change its numbers.
    """

    shape: str
    points: str
    view: str
    smoothness: float
    strength: float
    operation: str
    radius: float
    properties: Any
    _seen: ClassVar[GestureView | None] = None

    def invoke(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        """Start a gesture at the mouse; where there is no viewport about it, run with what was given."""
        if context.region_data is None or context.region is None or self.points:
            return self.execute(context)  # type: ignore[attr-defined]
        object = active_splats(context)
        assert object is not None
        settings = gesture_settings(context)
        for name in REMEMBERED:
            if not self.properties.is_property_set(name):
                setattr(self, name, getattr(settings, name))
        try:
            check_rest(object)
            view = region_viewpoint(object, context.region, context.region_data)
            self.view = json.dumps(view.to_dict())
            self._path: list[list[float]] = []
            self._first, self._typed = self.operation, ""
            self._point(event)
            self.points = json.dumps(self._path * FEWEST[self.shape])
            self._layer(context, object)  # type: ignore[attr-defined]  # a bone that cannot be drawn for is told now
            self._start(context, object, GestureView(object, view))
        except GaussiAnimateError as error:
            self.report({"ERROR"}, str(error))  # type: ignore[attr-defined]
            return {"CANCELLED"}
        self._update(context, event)
        return {"RUNNING_MODAL"}

    def modal(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        """Follow the mouse; the release adds the layer, Esc or the right button drops it."""
        if event.type in ("ESC", "RIGHTMOUSE") and event.value == "PRESS":
            self._end(context)
            return {"CANCELLED"}
        if event.type == "LEFTMOUSE" and event.value == "RELEASE":
            return self._finish(context)
        if event.value == "PRESS" and event.type in WHEEL:
            self._turn(WHEEL[event.type], event.shift)
        elif event.value == "PRESS":
            self._type(event.type)
        if event.type in ("MOUSEMOVE", "INBETWEEN_MOUSEMOVE"):
            self._point(event)
        if event.type != "INBETWEEN_MOUSEMOVE":
            self._update(context, event)
        return {"RUNNING_MODAL"}

    def cancel(self, context: bpy.types.Context) -> None:
        """Tidy up where Blender ends the gesture."""
        self._end(context)

    def _start(self, context: bpy.types.Context, object: bpy.types.Object, seen: GestureView) -> None:
        DrawsSelection._seen = seen
        self._object = object.session_uid
        assert context.region is not None
        seen.start(context.region)
        context.window_manager.modal_handler_add(self)  # pyright: ignore[reportArgumentType]

    def _end(self, context: bpy.types.Context) -> None:
        if DrawsSelection._seen is not None:
            DrawsSelection._seen.stop()
            DrawsSelection._seen = None
        if context.workspace is not None:
            context.workspace.status_text_set(None)
        if context.area is not None:
            context.area.tag_redraw()

    def _finish(self, context: bpy.types.Context) -> set[str]:
        """Add the layer, and remember its numbers for the next one."""
        self._end(context)
        if not self._is_drawn():
            return {"CANCELLED"}
        settings = gesture_settings(context)
        for name in ("smoothness", "strength"):
            setattr(settings, name, getattr(self, name))
        return self.execute(context)  # type: ignore[attr-defined]

    def _is_drawn(self) -> bool:
        """Whether the mouse was moved far enough to select something."""
        if self.shape == "STROKE":
            return True
        if self.shape == "LASSO":
            return len(self._path) >= FEWEST["LASSO"]
        (ax, ay), (bx, by) = self._path[0], self._path[-1]
        return min(abs(bx - ax), abs(by - ay)) >= 1

    def _point(self, event: bpy.types.Event) -> None:
        at = [float(event.mouse_region_x), float(event.mouse_region_y)]
        if self.shape == "STROKE":
            pressure = event.pressure if event.is_tablet else 1.0
            at.append(self.radius * max(pressure, 0.05))
        if self.shape in ("RECTANGLE", "ELLIPSE"):
            self._path[1:] = [at]
        elif self._path and max(abs(at[0] - self._path[-1][0]), abs(at[1] - self._path[-1][1])) < APART:
            return
        else:
            self._path.append(at)

    def _turn(self, step: int, strength: bool) -> None:
        """Let a notch of the wheel change smoothness or strength."""
        self._typed = ""
        if strength:
            self.strength = round(min(max(self.strength + step * WEAKER, 0.0), 1.0), 4)
        else:
            self.smoothness = max(self.smoothness, 1.0) * SMOOTHER**step
            if self.smoothness <= 1.0:
                self.smoothness = 0.0

    def _type(self, key: str) -> None:
        """Let digits set the smoothness."""
        if key == "BACK_SPACE":
            self._typed = self._typed[:-1]
        elif key in DIGITS:
            self._typed = (self._typed + DIGITS[key])[-4:]
        else:
            return
        self.smoothness = float(self._typed or 0)

    def _update(self, context: bpy.types.Context, event: bpy.types.Event) -> None:
        """Show what would be selected."""
        self.operation = "SUBTRACT" if event.ctrl else self._first
        missing = FEWEST[self.shape] - len(self._path)
        self.points = json.dumps(self._path + self._path[-1:] * max(missing, 0))
        object, seen = active_splats(context), DrawsSelection._seen
        if object is None or seen is None or object.session_uid != self._object:
            return
        seen.show(self._shown(context, object, seen))
        if context.area is not None:
            context.area.tag_redraw()
        if context.workspace is not None:
            context.workspace.status_text_set(self._hint())

    def _shown(
        self, context: bpy.types.Context, object: bpy.types.Object, seen: GestureView
    ) -> SelectionLayer:
        return self._layer(context, object, seen.front)  # type: ignore[attr-defined]

    def _hint(self) -> str:
        return (
            f"{self.operation.title()}   |   Smoothness {self.smoothness:.0f} px: Wheel, [ ], digits   |   "
            f"Strength {self.strength:.2f}: Shift Wheel   |   Ctrl: Subtract   |   Esc: Cancel"
        )
