"""The modal half of drawing a selection: mouse, wheel and keys change the layer before it is added."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import bpy

from ..core.errors import GaussiAnimateError, SelectionError
from ..core.selection.layer import SelectionLayer
from ..gaussianimate_addon.subject import active_splats
from ..gaussianimate_addon.weights.gesture_display import borrow_display, return_display
from ..gaussianimate_addon.weights.gesture_path import GesturePath, TypedNumber
from ..gaussianimate_addon.weights.gesture_settings import REMEMBERED, gesture_settings
from ..gaussianimate_addon.weights.gesture_view import GestureView, region_box
from ..gaussianimate_addon.weights.gestures import check_rest, region_viewpoint
from ..gaussianimate_addon.weights.pixel_map import SAME, PixelMap

SMOOTHER, WEAKER = 1.15, 0.05  # what one notch of the wheel does
WHEEL = {"WHEELUPMOUSE": 1, "WHEELDOWNMOUSE": -1, "RIGHT_BRACKET": 1, "LEFT_BRACKET": -1}
ENTER = ("RET", "NUMPAD_ENTER")
OPEN = "Drag: Another Outline, Enter: Done"
MOVES = ("MOUSEMOVE", "INBETWEEN_MOUSEMOVE")


class DrawsSelection:
    """Mix-in for operators on a selection layer: invoked with the mouse, its shape is drawn first.

    The operator's properties hold the gesture, so that Adjust Last Operation can change its numbers.
    """

    shape: str
    points: str
    smoothness: float
    strength: float
    operation: str
    radius: float
    drawn_radius: float
    properties: Any
    takes_operation = True  # whether Ctrl makes it a subtraction
    _seen: ClassVar[GestureView | None] = None  # of the gesture that is drawn, in whatever window
    _mine: GestureView | None = None
    _pixels: PixelMap = SAME

    def invoke(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        """Start a gesture at the mouse; where there is no viewport about it, run with what was given."""
        raise NotImplementedError

    def modal(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        """Follow the mouse; the release ends the gesture, Esc or the right button drops it.

        So does whatever happens to the splats or the viewport meanwhile, by another window or a script.
        """
        try:
            self._check(context)
            return self._follow(context, event)
        except GaussiAnimateError as error:
            self._drop(context)
            self.report({"ERROR"}, str(error))  # type: ignore[attr-defined]
            return {"CANCELLED"}
        except BaseException:
            self._end(context)
            raise

    def _follow(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        if event.type in ("ESC", "RIGHTMOUSE") and event.value == "PRESS":
            self._drop(context)
            return {"CANCELLED"}
        if event.type == "LEFTMOUSE" and event.value in ("PRESS", "DOUBLE_CLICK"):
            self._press(event)
        elif event.type == "LEFTMOUSE" and event.value == "RELEASE" and self._pressed:
            self._pressed = False
            if not (event.alt and self.shape == "LASSO"):
                return self._finish(context)
            self._path.close()
        elif event.type in ENTER and event.value == "PRESS" and not self._pressed:
            return self._finish(context)
        elif event.value == "PRESS" and event.type in WHEEL:
            self._turn(WHEEL[event.type], event)
        elif event.value == "PRESS":
            self._typed.press(event.type, self)
        elif event.type in MOVES and self._pressed:
            self._point(event)
        if event.type != "INBETWEEN_MOUSEMOVE":
            self._update(context, event)
        return {"RUNNING_MODAL"}

    def cancel(self, context: bpy.types.Context) -> None:
        """Tidy up where Blender ends the gesture."""
        self._drop(context)

    def _begin(
        self,
        context: bpy.types.Context,
        object: bpy.types.Object,
        region: bpy.types.Region,
        seen: GestureView,
        event: bpy.types.Event,
        presses: bool = False,
    ) -> None:
        """Listen to the mouse over a region; ``presses``: the event is the first point."""
        names = ("smoothness", "strength", *(("radius",) if self.shape == "STROKE" else ()))
        self._path, self._typed, self._pressed = GesturePath(self.shape), TypedNumber(names), False
        self._first = self.operation if self.takes_operation else ""
        self._box = region_box(region)
        stop_drawing(context.scene)  # one that is drawn in another window
        seen.borrowed = borrow_display(object)
        DrawsSelection._seen = self._mine = seen
        seen.start(region)
        try:
            if presses:
                self._press(event)
            self._update(context, event)
        except BaseException:
            self._end(context)
            raise
        context.window_manager.modal_handler_add(self)  # pyright: ignore[reportArgumentType]

    def _check(self, context: bpy.types.Context) -> None:
        """Raise SelectionError where the gesture cannot go on."""
        if self._mine is None or DrawsSelection._seen is not self._mine:
            raise SelectionError("Another selection was begun, so this one was dropped; draw it again")
        object = active_splats(context)
        if object is None or object.session_uid != self._mine.uid:
            raise SelectionError("The splats that were drawn on are not the active ones any more; draw again")
        if self._mine.region_now() != self._box:
            raise SelectionError("The viewport that was drawn in has changed; draw again")

    def _end(self, context: bpy.types.Context) -> None:
        if self._mine is not None and DrawsSelection._seen is self._mine:
            stop_drawing(context.scene)
        if context.workspace is not None:
            context.workspace.status_text_set(None)
        if context.area is not None:
            context.area.tag_redraw()

    def _drop(self, context: bpy.types.Context) -> None:
        """Leave all as it was."""
        self._end(context)

    def _finish(self, context: bpy.types.Context) -> set[str]:
        """Run with what was drawn."""
        if not self._path.is_drawn():
            self._drop(context)
            return {"CANCELLED"}
        self._end(context)
        return self.execute(context)  # type: ignore[attr-defined]

    def _press(self, event: bpy.types.Event) -> None:
        """Begin an outline, unless the mouse is over something else."""
        x, y, width, height = self._box
        if 0 <= event.mouse_x - x <= width and 0 <= event.mouse_y - y <= height:
            self._pressed = True
            self._point(event)

    def _point(self, event: bpy.types.Event) -> None:
        pressure = event.pressure if event.is_tablet else 1.0
        self._path.add(event.mouse_x - self._box[0], event.mouse_y - self._box[1], pressure)

    def _turn(self, step: int, event: bpy.types.Event) -> None:
        """Let a notch of the wheel change smoothness, with Shift strength, with Alt the brush's radius."""
        self._typed.done()
        if event.shift:
            self.strength = round(min(max(self.strength + step * WEAKER, 0.0), 1.0), 4)
        elif event.alt and self.shape == "STROKE":
            self.radius = max(self.radius * SMOOTHER**step, 1.0)
        else:
            self.smoothness = max(self.smoothness, 1.0) * SMOOTHER**step
            if self.smoothness <= 1.0:
                self.smoothness = 0.0

    def _update(self, context: bpy.types.Context, event: bpy.types.Event) -> None:
        """Show what would be selected."""
        if self.takes_operation:
            self.operation = "SUBTRACT" if event.ctrl else self._first
        object, seen = active_splats(context), self._mine
        assert object is not None and seen is not None
        if not self._path.empty:
            rings = [self._pixels.to_layer(ring).tolist() for ring in self._path.points(self.radius)]
            self.points = json.dumps(rings if len(rings) > 1 else rings[0])
            self.drawn_radius = self.radius
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
        parts = [
            self._waits(),
            f"{self._number('smoothness', '.0f')} px: Wheel, [ ]",
            f"{self._number('strength', '.2f')}: Shift Wheel",
        ]
        if self.shape == "STROKE":
            parts.append(f"{self._number('radius', '.0f')} px: Alt Wheel")
        parts.append(f"Digits: {self._typed.name.title()}, Tab: Next")
        if self.shape == "LASSO" and self._pressed:
            parts.append("Release with Alt: Another Outline")
        if self.takes_operation:
            parts.append("Ctrl: Subtract")
        return "   |   ".join([*parts, "Esc: Cancel"])

    def _waits(self) -> str:
        """Say what the gesture does, or what it waits for."""
        return OPEN if not self._pressed else self.operation.title()

    def _number(self, name: str, form: str) -> str:
        """Return a number with its name, as typed where it is."""
        typed = self._typed.text if self._typed.name == name else ""
        return f"{name.title()} {f'[{typed}]' if typed else format(getattr(self, name), form)}"


def stop_drawing(scene: bpy.types.Scene) -> None:
    """Show the splats as they are again, where a gesture is drawn.

    When the extension is switched off, Blender drops what is modal without a word to it.
    """
    seen, DrawsSelection._seen = DrawsSelection._seen, None
    if seen is None:
        return
    seen.stop()
    if seen.borrowed:
        return_display(seen.uid, scene)


class DrawsNewSelection(DrawsSelection):
    """Mix-in for the operator that adds a layer: the press that starts it is the first point."""

    view: str

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
            self._try_bone(object)  # one that cannot be drawn for is told now
            self._begin(context, object, context.region, GestureView(object, view), event, presses=True)
        except GaussiAnimateError as error:
            self.report({"ERROR"}, str(error))  # type: ignore[attr-defined]
            return {"CANCELLED"}
        return {"RUNNING_MODAL"}

    def _finish(self, context: bpy.types.Context) -> set[str]:
        """Remember the numbers for the next gesture, too."""
        if self._path.is_drawn():
            settings = gesture_settings(context)
            for name in ("smoothness", "strength", "radius"):
                setattr(settings, name, getattr(self, name))
        return super()._finish(context)

    def _try_bone(self, object: bpy.types.Object) -> None:
        """Raise SelectionError where there is no bone to draw for."""
        raise NotImplementedError
