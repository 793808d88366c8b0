"""Splats in every 3D viewport: drawn after the scene and its overlays, into a picture of their own.

That picture takes over the depth of what the viewport shows, so that meshes hide splats. It is laid, scene
linear, over the scene itself, so that the viewport's view transform applies as to anything in the scene, and
what Blender lays over the scene (background colour, grid, outlines) is dimmed to what the splats leave of it.
Splats thereby look like those that Blender draws natively.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any, cast

import bpy
import gpu
import numpy as np

from ...core.render.camera import Camera
from ..failure import sentence
from ..views import redraw_sidebars, redraw_views, view_regions
from . import screen
from .atlas import Atlas
from .bones_in_front import mask_bones_in_front
from .display import display_shading, drawn_objects, give_back_all, hand_over_all, skin_layout
from .draw import (
    Frame,
    Item,
    Shading,
    Show,
    bone_moves,
    draw_frame,
    upload_bones,
    upload_camera,
    upload_items,
)
from .gpu_objects import release, released_by
from .gradient_arrows import GradientArrows
from .mask import Mask
from .order import ViewOrder
from .scene import SceneSplats

POLL = 0.01  # seconds between looks whether an order is sorted


@dataclass
class View:
    """What is kept of one region from draw to draw.

    scene_buffer : where Blender draws the scene; known between the handlers of one redraw
    shown, depths : what the canvas shows and what depths hid it, to draw nothing twice
    """

    order: ViewOrder = field(default_factory=ViewOrder)
    canvas: screen.Canvas = field(default_factory=screen.Canvas)
    arrows: GradientArrows = field(default_factory=GradientArrows)
    scene_buffer: Any = None
    shown: tuple[object, ...] = field(default=(), repr=False)
    depths: np.ndarray | None = field(default=None, repr=False)


class Drawer:
    """The state of drawing in this session.

    failure : why drawing is off, one sentence
    mask : what a gesture selects while it is drawn
    overlay : what is shown while there is no mask
    """

    def __init__(self) -> None:
        self.scenes: dict[tuple[int, str], SceneSplats] = {}
        self.views: dict[int, View] = {}
        self.failure: str | None = None
        self.mask: Mask | None = None
        self.overlay: Mask | None = None
        self._told: tuple[object, ...] = ()

    @property
    def splats(self) -> SceneSplats:
        """The splats of the window's scene and view layer; two windows may show two."""
        context = bpy.context
        key = context.scene.session_uid, context.view_layer.name
        return self.scenes.setdefault(key, SceneSplats(skip_hidden=True))

    def look_again(self) -> None:
        """See `SceneSplats.look_again`."""
        for scene in list(self.scenes.values()):
            scene.look_again()

    def look_at_rigs(self) -> None:
        """See `SceneSplats.look_at_rigs`."""
        for scene in list(self.scenes.values()):
            scene.look_at_rigs()

    def forget(self, uid: int | None = None) -> None:
        """See `SceneSplats.forget`."""
        for scene in list(self.scenes.values()):
            scene.forget(uid)

    def forget_played(self, uid: int | None = None) -> None:
        """Captures that play (or that one, if it plays) may show another frame now."""
        for scene in list(self.scenes.values()):
            for subject in scene.subjects:
                if subject.plays and uid in (None, subject.uid):
                    scene.forget(subject.uid)

    def reset(self) -> None:
        """Forget everything about the file."""
        self.scenes.clear()
        self.views.clear()
        self.mask = self.overlay = None

    def tidy(self) -> None:
        """Forget regions and view layers that no window shows any more."""
        regions = {region.as_pointer() for region in view_regions()}
        for pointer in self.views.keys() - regions:
            del self.views[pointer]
        windows = bpy.context.window_manager.windows
        for key in self.scenes.keys() - {(w.scene.session_uid, w.view_layer.name) for w in windows}:
            del self.scenes[key]

    def before_scene(self) -> None:
        """Note where the scene is about to be drawn."""
        if self.failure is not None:
            return
        pointer = bpy.context.region.as_pointer()
        if pointer not in self.views:
            self.tidy()
        self.views.setdefault(pointer, View()).scene_buffer = gpu.state.active_framebuffer_get()

    def after_scene(self) -> None:
        """Draw the splats of this region; a failure is told once, in one line, and stops the drawing."""
        context = bpy.context
        view = self.views.get(context.region.as_pointer())
        if self.failure is not None or view is None or view.scene_buffer is None:
            return
        try:
            self._draw(context, view)
        except Exception as error:  # nothing may pass: Blender would tell it at every redraw
            self.failure = sentence(error)
            print(f"GaussiAnimate stopped drawing splats: {self.failure}", file=sys.stderr)
            bpy.app.timers.register(_fall_back, first_interval=0.0)  # drawing must not change the file
        finally:
            view.scene_buffer = None

    def _draw(self, context: bpy.types.Context, view: View) -> None:
        depsgraph = context.view_layer.depsgraph  # as it is: nothing may be evaluated amid a redraw
        splats, space = self.splats, cast(Any, context.space_data)
        splats.update(drawn_objects, depsgraph, skin_layout(context))
        self._tell(splats)
        shading = display_shading(context)
        marked = shading.show == Show.WEIGHT or shading.gradients
        items = splats.items(depsgraph, space, with_marks=marked)
        if splats.atlas is None or not items:
            return
        camera = region_camera(context)
        moves = bone_moves(splats.atlas, items)
        view.order.follow(splats.atlas, items, moves, camera, _poll_orders)
        depths = None
        if has_depth(space):
            overlay: Any = gpu.state.active_framebuffer_get()
            depths = screen.read_depths(overlay, camera.width, camera.height)
        over = self.mask or self.overlay
        mask = None if over is None else over.texture(splats.subjects, splats.atlas)
        version = over.version if over is not None and mask is not None else 0
        shown = (view.order.version, version, shading, *_numbers(camera, items, moves))
        if shown != view.shown or not _equal(depths, view.depths):
            _draw_canvas(view, splats.atlas, items, moves, camera, shading, depths, mask)
            view.shown, view.depths = shown, depths
        picture = view.canvas.texture()
        with view.scene_buffer.bind():
            screen.composite(picture)
        masked = space.overlay.show_overlays and mask_bones_in_front(context, depsgraph)
        screen.composite(picture, transmit=True, masked=masked)

    def _tell(self, splats: SceneSplats) -> None:
        """Let sidebars say anew what is drawn, where that changed."""
        atlas = splats.atlas
        news = (splats.problem, *(() if atlas is None else (len(atlas.spans), atlas.memory, atlas.notes)))
        if news != self._told:
            self._told = news
            bpy.app.timers.register(redraw_sidebars, first_interval=0.1)


def _draw_canvas(
    view: View,
    atlas: Atlas,
    items: list[Item],
    moves: list[np.ndarray],
    camera: Camera,
    shading: Shading,
    depths: np.ndarray | None,
    mask: gpu.types.GPUTexture | None,
) -> None:
    frame = Frame(
        camera=upload_camera(camera, shading, len(items)),
        items=upload_items(atlas, items, moves, camera),
        order=cast(Any, view.order.texture),
        count=view.order.count,
        bones=upload_bones(moves, items),
        mask=mask,
    )
    with view.canvas.bind(camera.width, camera.height):
        screen.clear(depths)
        gpu.state.depth_test_set("LESS_EQUAL")
        try:
            draw_frame(atlas, frame, shading)
            if shading.gradients:
                view.arrows.draw(atlas, items, frame, camera, shading)
        finally:
            gpu.state.depth_test_set("NONE")


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
    """Whether meshes hide splats in the viewport.

    EEVEE and Cycles hand out their depth with overlays only, and X-ray looks through surfaces.
    """
    shading = space.shading
    if shading.type == "SOLID":
        return not shading.show_xray
    if shading.type == "WIREFRAME":
        return not shading.show_xray_wireframe
    return space.overlay.show_overlays


def _numbers(camera: Camera, items: list[Item], moves: list[np.ndarray]) -> tuple[object, ...]:
    arrays = [camera.view, camera.projection, *(item.matrix for item in items), *moves]
    marks = [item.marks for item in items if item.marks is not None]
    spans = [(item.span, item.elastic) for item in items]
    return camera.width, camera.height, tuple(spans), *(array.tobytes() for array in (*arrays, *marks))


def _equal(one: np.ndarray | None, other: np.ndarray | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)


DRAWER = Drawer()
released_by(DRAWER.reset)
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
    release()
    DRAWER.failure = None


def _before_scene() -> None:
    DRAWER.before_scene()


def _after_scene() -> None:
    DRAWER.after_scene()


def retry() -> None:
    """Draw again after a failure, whose cause may be gone."""
    DRAWER.failure = None
    DRAWER.look_again()
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
    DRAWER.tidy()
    waiting = {pointer: view.order for pointer, view in DRAWER.views.items() if view.order.waiting}
    finished = {pointer for pointer, order in waiting.items() if order.finished}
    redraw_views(finished.__contains__)
    # What is finished waits for its redraw only, which a minimised window may never see.
    return POLL if len(finished) < len(waiting) else None
