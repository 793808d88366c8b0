"""The mouse and the keyboard over a 3D viewport: real X events by xdotool, else Blender's simulated ones.

Real events go the whole way a user's do. They need xdotool and an X display; where either is missing the same
script is driven by simulated events, and says so.
"""

from __future__ import annotations

import os
import shutil
import subprocess

import bpy
import numpy as np
from bpy_extras.view3d_utils import location_3d_to_region_2d
from mathutils import Vector

WHEEL = {"WHEELUPMOUSE": 4, "WHEELDOWNMOUSE": 5}
KEYS = {
    "ESC": "Escape",
    "RET": "Return",
    "TAB": "Tab",
    "DOWN_ARROW": "Down",
    "BACK_SPACE": "BackSpace",
    "LEFT_BRACKET": "bracketleft",
    "RIGHT_BRACKET": "bracketright",
    "PERIOD": "period",
} | {word: str(n) for n, word in enumerate("ZERO ONE TWO THREE FOUR FIVE SIX SEVEN EIGHT NINE".split())}


def has_xdotool():
    return bool(os.environ.get("DISPLAY")) and shutil.which("xdotool") is not None


def mouse(view):
    """Return the mouse over a view, real where it can be. From then on simulated events do nothing there."""
    if not has_xdotool():
        print("no xdotool on an X display: the mouse is simulated by Blender", flush=True)
        return Mouse(view)
    bpy.app.use_event_simulate = False
    return RealMouse(view)


class Mouse:
    """Events simulated by Blender. ``held`` are the modifiers that are down: ctrl, shift, alt."""

    def __init__(self, view):
        self.window, (_, self.region, self.data) = bpy.context.window_manager.windows[0], view
        self.at, self.held = (0, 0), set()

    def place(self, point):
        """Return where a point of the scene is in the region, whole pixels."""
        spot = location_3d_to_region_2d(self.region, self.data, Vector(point))
        return int(spot.x), int(spot.y)

    def move(self, point):
        x, y = self.place(point)
        self.point(self.region.x + x, self.region.y + y)

    def point(self, x, y):
        """Go to a pixel of the window, counted from its bottom left."""
        self.at = x, y
        self._move()

    def down(self, button="LEFTMOUSE"):
        self._send(button, "PRESS")

    def up(self, button="LEFTMOUSE"):
        self._send(button, "RELEASE")

    def hold(self, *modifiers):
        self.held |= set(modifiers)

    def let_go(self):
        self.held = set()

    def press(self, points, *modifiers, pause=0.05):
        """Press at the first point, with modifiers held, and go to the others; use with ``yield from``."""
        self.move(points[0])
        yield 0.2
        self.hold(*modifiers)
        self.down()
        yield 0.3
        for a, b in zip(points[:-1], points[1:], strict=True):
            for t in np.linspace(0, 1, 7)[1:]:
                self.move(Vector(a).lerp(Vector(b), float(t)))
                yield pause
        yield 0.4

    def release(self):
        self.up()
        yield 0.1
        self.let_go()
        yield 0.6

    def drag(self, points, *modifiers):
        """Draw a whole gesture."""
        yield from self.press(points, *modifiers)
        yield from self.release()

    def key(self, kind, *modifiers):
        """Press and release a key, or turn the wheel by a notch, with further modifiers held meanwhile."""
        before = set(self.held)
        self.hold(*modifiers)
        self._key(kind)
        yield 0.2
        for modifier in set(modifiers) - before:
            self._let_go(modifier)
        yield 0.1

    def _key(self, kind):
        for value in ("PRESS", "RELEASE"):
            self._send(kind, value)

    def _let_go(self, modifier):
        self.held.discard(modifier)

    def _move(self):
        self._send("MOUSEMOVE", "NOTHING")

    def _send(self, kind, value):
        self.window.event_simulate(
            kind, value, x=self.at[0], y=self.at[1], **{name: True for name in self.held}
        )


class RealMouse(Mouse):
    """Events of the X server. A key that is held stays down until `let_go`."""

    def __init__(self, view):
        super().__init__(view)
        size = subprocess.run(["xdotool", "getdisplaygeometry"], capture_output=True, check=True, text=True)
        self.screen_height = int(size.stdout.split()[1])

    def hold(self, *modifiers):
        for name in modifiers:
            if name not in self.held:
                _xdotool("keydown", name)
        super().hold(*modifiers)

    def let_go(self):
        for name in list(self.held):
            self._let_go(name)

    def _let_go(self, modifier):
        super()._let_go(modifier)
        _xdotool("keyup", modifier)

    def _key(self, kind):
        if kind in WHEEL:
            _xdotool("click", WHEEL[kind])
        else:
            _xdotool("key", KEYS.get(kind, kind.lower()))

    def _move(self):
        x, y = self.window.x + self.at[0], self.window.y + self.at[1]
        _xdotool("mousemove", x, self.screen_height - 1 - y)

    def _send(self, kind, value):
        _xdotool("mousedown" if value == "PRESS" else "mouseup", {"LEFTMOUSE": 1, "RIGHTMOUSE": 3}[kind])


def _xdotool(*arguments):
    subprocess.run(["xdotool", *map(str, arguments)], check=True)
