"""Splats in every 3D viewport: drawn after the scene and its overlays, into a picture of their own.

That picture takes over the depth of what the viewport shows, so that meshes hide splats. It is laid, scene
linear, over the scene itself, so that the viewport's view transform applies as to anything in the scene, and
what Blender lays over the scene (background colour, grid, outlines) is dimmed to what the splats leave of it.
Splats thereby look like those that Blender draws natively.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import bpy
import gpu
import numpy as np

from ...core.errors import GaussiAnimateError
from ...core.render.camera import Camera
from ..views import redraw_sidebars, redraw_views, view_regions
from . import screen
from .bones_in_front import mask_bones_in_front
from .display import display_shading, drawn_objects, give_back_all, hand_over_all, skin_layout
from .draw import Frame, Item, bone_moves, draw_frame, upload_bones, upload_camera, upload_items
from .order import ViewOrder
from .scene import SceneSplats

POLL = 0.01  # seconds between looks whether an order is sorted


@dataclass
class View:
    """What is kept of one region from draw to draw.

    scene_buffer : where Blender draws the scene; known between the handlers of one redraw
    shown : what the canvas shows, to draw nothing twice
    """

    order: ViewOrder = field(default_factory=ViewOrder)
    canvas: screen.Canvas = field(default_factory=screen.Canvas)
    scene_buffer: Any = None
    shown: tuple[object, ...] = field(default=(), repr=False)


class Drawer:
    """The state of drawing in this session. ``failure``: why drawing is off, one sentence."""

    def __init__(self) -> None:
        self.splats = SceneSplats()
        self.views: dict[int, View] = {}
        self.failure: str | None = None

    def reset(self) -> None:
        """Forget everything about the file."""
        self.splats = SceneSplats()
        for view in self.views.values():
            view.canvas.free()
        self.views.clear()

    def before_scene(self) -> None:
        """Note where the scene is about to be drawn."""
        if self.failure is None:
            view = self.views.setdefault(bpy.context.region.as_pointer(), View())
            view.scene_buffer = gpu.state.active_framebuffer_get()

    def after_scene(self) -> None:
        """Draw the splats of this region; a failure is told once and stops the drawing."""
        if self.failure is not None:
            return
        context = bpy.context
        view = self.views.get(context.region.as_pointer())
        if view is None or view.scene_buffer is None:
            return
        try:
            self._draw(context, view)
        except Exception as error:
            self.failure = str(error)
            print(f"GaussiAnimate stopped drawing splats: {error}")
            bpy.app.timers.register(_fall_back, first_interval=0.0)  # drawing must not change the file
            if not isinstance(error, GaussiAnimateError):
                raise
        finally:
            view.scene_buffer = None

    def _draw(self, context: bpy.types.Context, view: View) -> None:
        depsgraph = context.evaluated_depsgraph_get()
        self.splats.update(drawn_objects, depsgraph, skin_layout(context))
        shading = display_shading(context)
        space: Any = context.space_data
        items = self.splats.items(depsgraph, space, with_marks=True)
        atlas = self.splats.atlas
        if atlas is None or not items:
            return
        camera = region_camera(context)
        moves = bone_moves(atlas, items)
        view.order.follow(atlas, items, moves, camera, _poll_orders)
        overlay: Any = gpu.state.active_framebuffer_get()
        depths = None
        if has_depth(space):
            depths = screen.read_depths(overlay, camera.width, camera.height)
        shown = (view.order.version, shading, *_numbers(camera, items, moves), *_numbers_of(depths))
        if shown != view.shown:
            frame = Frame(
                camera=upload_camera(camera, shading, len(items)),
                items=upload_items(atlas, items, moves, camera),
                order=view.order.texture,
                count=view.order.count,
                bones=upload_bones(moves, items),
            )
            with view.canvas.bind(camera.width, camera.height):
                screen.clear(depths)
                gpu.state.depth_test_set("LESS_EQUAL")
                draw_frame(atlas, frame, shading)
                gpu.state.depth_test_set("NONE")
            view.shown = shown
        with view.scene_buffer.bind():
            screen.composite(view.canvas.texture())
        masked = space.overlay.show_overlays and mask_bones_in_front(context, depsgraph)
        screen.composite(view.canvas.texture(), transmit=True, masked=masked)


def region_camera(context: bpy.types.Context) -> Camera:
    """Return how the region that is being drawn sees the scene."""
    region, view = context.region, context.region_data
    return Camera(
        np.array(view.view_matrix, np.float64),
        np.array(view.window_matrix, np.float64),
        region.width,
        region.height,
    )


def has_depth(space: bpy.types.SpaceView3D) -> bool:
    """Whether the viewport's depth is that of the scene: EEVEE and Cycles hand it out with overlays only."""
    return space.shading.type in ("SOLID", "WIREFRAME") or space.overlay.show_overlays


def _numbers(camera: Camera, items: list[Item], moves: list[np.ndarray]) -> tuple[object, ...]:
    arrays = [camera.view, camera.projection, *(item.matrix for item in items), *moves]
    marks = [item.marks for item in items if item.marks is not None]
    spans = [(item.span, item.elastic) for item in items]
    return camera.width, camera.height, tuple(spans), *(array.tobytes() for array in (*arrays, *marks))


def _numbers_of(depths: np.ndarray | None) -> tuple[object, ...]:
    return () if depths is None else (depths.tobytes(),)


DRAWER = Drawer()
_handlers: list[Any] = []


def start() -> None:
    """Add the draw handlers."""
    if _handlers or bpy.app.background:
        return
    for function, stage in ((_before_scene, "PRE_VIEW"), (_after_scene, "POST_VIEW")):
        _handlers.append(bpy.types.SpaceView3D.draw_handler_add(function, (), "WINDOW", stage))


def stop() -> None:
    """Remove the draw handlers and give the GPU's memory back."""
    while _handlers:
        bpy.types.SpaceView3D.draw_handler_remove(_handlers.pop(), "WINDOW")
    for function in (_poll, _fall_back):
        if bpy.app.timers.is_registered(function):
            bpy.app.timers.unregister(function)
    DRAWER.reset()
    DRAWER.failure = None


def _before_scene() -> None:
    DRAWER.before_scene()


def _after_scene() -> None:
    DRAWER.after_scene()


def retry() -> None:
    """Draw again after a failure, whose cause may be gone."""
    DRAWER.failure = None
    DRAWER.splats.look_again()
    hand_over_all()
    redraw_views()


def _fall_back() -> None:
    """Let Blender draw what the drawer cannot."""
    give_back_all()
    redraw_views()
    redraw_sidebars()


def _poll_orders() -> None:
    if not bpy.app.timers.is_registered(_poll):
        bpy.app.timers.register(_poll, first_interval=POLL)


def _poll() -> float | None:
    """Redraw the regions whose order is sorted; forget regions that are gone."""
    alive = {region.as_pointer() for region in view_regions()}
    for pointer in set(DRAWER.views) - alive:
        DRAWER.views.pop(pointer).canvas.free()
    finished = {pointer for pointer, view in DRAWER.views.items() if view.order.finished}
    redraw_views(finished.__contains__)
    return POLL if any(view.order.waiting for view in DRAWER.views.values()) else None
