"""Drives a Blender window: a script is a generator that yields the seconds to wait before it goes on.

Started by run.sh, which installs nothing on the user's side: the archive named by GAUSSIANIMATE_ARCHIVE
is installed into a throw-away user folder. Events are Blender's own simulated ones
(--enable-event-simulate), so neither a window manager nor an input tool is needed; mouse.py takes real
ones where xdotool is there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import bpy

PACKAGE = "bl_ext.user_default.gaussianimate"
OUT = Path(os.environ.get("GAUSSIANIMATE_GUI_OUT", "build/gui")).resolve()
Script = Iterator[float]


def install() -> None:
    """Install and enable the archive as a user would."""
    archive = os.environ["GAUSSIANIMATE_ARCHIVE"]
    done = bpy.ops.extensions.package_install_files(
        filepath=archive, repo="user_default", enable_on_install=True
    )
    assert done == {"FINISHED"} and PACKAGE in bpy.context.preferences.addons
    bpy.context.preferences.view.show_splash = False


def run(script: Callable[[], Script], limit: float = 300.0) -> None:
    """Run a script's steps by a timer; Blender ends with 0 when all passed, else with 1."""
    steps, deadline = script(), time.monotonic() + limit

    def step() -> float:
        try:
            assert time.monotonic() < deadline, f"the script took over {limit} s"
            return next(steps)
        except StopIteration:
            finish(0)
        except BaseException:
            traceback.print_exc()
            picture("failure")
            finish(1)
        return 0.0

    bpy.app.timers.register(step, first_interval=3.0, persistent=True)


def finish(code: int) -> None:
    """End Blender at once."""
    print("passed" if code == 0 else "FAILED", flush=True)
    sys.stderr.flush()
    os._exit(code)


def wait_until(condition: Callable[[], object], seconds: float, what: str) -> Script:
    """Wait for a condition (use with ``yield from``)."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited {seconds} s for {what}"
        yield 0.05


def view() -> dict:
    """Return the context of the first 3D view, for ``temp_override``."""
    window = bpy.context.window_manager.windows[0]
    area = next(area for area in window.screen.areas if area.type == "VIEW_3D")
    region = next(region for region in area.regions if region.type == "WINDOW")
    return {"window": window, "area": area, "region": region}


def press(key: str, **modifiers: bool) -> None:
    """Press and release a key over the middle of the 3D view."""
    where = view()
    region, window = where["region"], where["window"]
    x, y = region.x + region.width // 2, region.y + region.height // 2
    for value in ("PRESS", "RELEASE"):
        window.event_simulate(key, value, x=x, y=y, **modifiers)


def escape(ended: Callable[[], object]) -> Script:
    """Press Esc and check that what runs has ended within a second, redraws not counted."""
    started = time.monotonic()
    with bpy.context.temp_override(**view()):
        bpy.ops.wm.redraw_timer(type="DRAW_WIN_SWAP", iterations=1)
    redraw = time.monotonic() - started
    pressed = time.monotonic()
    press("ESC")
    yield from wait_until(ended, 1.0 + 2 * redraw, "Esc to cancel")
    print(f"Esc answered in {time.monotonic() - pressed:.2f} s, a redraw takes {redraw:.2f} s", flush=True)


def show_tab(category: str = "GaussiAnimate") -> Script:
    """Open the sidebar at a tab, by turning the wheel over its tabs (use with ``yield from``)."""
    area = view()["area"]
    area.spaces[0].show_region_ui = True
    yield 0.5
    sidebar = next(region for region in area.regions if region.type == "UI")
    x, y = sidebar.x + sidebar.width - 8, sidebar.y + sidebar.height // 2
    window = view()["window"]
    for _ in range(20):
        if sidebar.active_panel_category == category:
            return
        window.event_simulate("MOUSEMOVE", "NOTHING", x=x, y=y)
        window.event_simulate("WHEELDOWNMOUSE", "PRESS", x=x, y=y, ctrl=True)
        yield 0.2
    raise AssertionError(f"no tab {category}, but {sidebar.active_panel_category}")


def picture(name: str) -> None:
    """Leave a picture of the screen."""
    OUT.mkdir(parents=True, exist_ok=True)
    path = OUT / f"{name}.png"
    if shutil.which("import") and os.environ.get("DISPLAY"):
        subprocess.run(["import", "-window", "root", str(path)], check=False)
    else:
        with bpy.context.temp_override(window=bpy.context.window_manager.windows[0]):
            bpy.ops.screen.screenshot(filepath=str(path))
