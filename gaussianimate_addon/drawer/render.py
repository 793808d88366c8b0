"""Pictures of a scene's splats as its camera sees them, for files: no window takes part."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

import bpy
import gpu
import numpy as np

from ...core.render.camera import Camera
from ..point_cloud import is_splat_data
from .appearances import may_be_instanced
from .draw import Shading
from .mesh_depth import draw_mesh_depths
from .offscreen import Picture, RenderError, draw_picture, empty_picture
from .render_visibility import rendering_names
from .scene import SceneSplats

NO_CAMERA = "'{}' has no camera; add one, or make one active in the scene's properties"
SHADING = Shading(scene_linear=True)


def start_gpu() -> None:
    """Bring the graphics module up where no window has done so.

    Raises
    ------
    RenderError : this computer has no graphics driver
    """
    if not bpy.app.background:
        return
    try:
        gpu.init()
    except SystemError as error:
        raise RenderError(
            f"Splats are drawn by the graphics device, and Blender finds no driver for it ({error}); install "
            "a Vulkan or OpenGL driver (Mesa has one in software, for computers without a graphics card)"
        ) from None


def render_size(scene: bpy.types.Scene, width: int = 0, height: int = 0) -> tuple[int, int]:
    """Return width and height in pixels; 0 is replaced by the scene's.

    Raises
    ------
    RenderError : larger than this device can draw
    """
    render = scene.render
    width = width or max(render.resolution_x * render.resolution_percentage // 100, 1)
    height = height or max(render.resolution_y * render.resolution_percentage // 100, 1)
    limit = gpu.capabilities.max_texture_size_get()
    if max(width, height) > limit:
        raise RenderError(
            f"{width} x {height} pixels are more than this graphics device can draw; "
            f"keep width and height within {limit}"
        )
    return width, height


def scene_camera(depsgraph: bpy.types.Depsgraph, scene: bpy.types.Scene, width: int, height: int) -> Camera:
    """Return the scene's camera at the depsgraph's frame.

    Raises
    ------
    RenderError : there is none, or it is no pinhole and not orthographic
    """
    object = scene.camera
    if object is None:
        raise RenderError(NO_CAMERA.format(scene.name))
    evaluated, data = object.evaluated_get(depsgraph), object.data
    if isinstance(data, bpy.types.Camera) and data.type not in ("PERSP", "ORTHO"):
        raise RenderError(
            f"'{object.name}' is a panoramic camera, which splats cannot be drawn with; "
            "make it perspective or orthographic"
        )
    projection = evaluated.calc_matrix_camera(
        depsgraph,
        x=width,
        y=height,
        scale_x=scene.render.pixel_aspect_x,
        scale_y=scene.render.pixel_aspect_y,
    )
    view = np.linalg.inv(np.array(evaluated.matrix_world.normalized(), np.float64))
    return Camera(view, np.array(projection, np.float64), width, height)


@dataclass
class SceneRenderer:
    """Draws frame after frame; what does not change stays on the GPU. Holds no Blender data.

    width, height : pixels
    with_depth : draw depths, too
    behind_meshes : meshes hide splats
    """

    width: int
    height: int
    with_depth: bool = False
    behind_meshes: bool = True
    splats: SceneSplats = field(default_factory=SceneSplats)
    has_drawn: bool = False

    def draw(self, scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph) -> Picture:
        """Draw the frame the depsgraph stands at; see `Picture` (scene-linear).

        Raises
        ------
        RenderError : there is no camera, splats cannot be drawn, or an armature shows its rest pose only
        """
        camera = scene_camera(depsgraph, scene, self.width, self.height)
        self._follow(depsgraph)
        atlas, items = self.splats.atlas, self.splats.items(depsgraph)
        if atlas is None and self.splats.problem:
            raise RenderError(self.splats.problem)
        if atlas is None or not items:
            return empty_picture(self.width, self.height)
        self.has_drawn = True

        def meshes() -> None:
            draw_mesh_depths(depsgraph, camera)

        return draw_picture(
            atlas,
            items,
            camera,
            SHADING,
            with_depth=self.with_depth,
            draw_in_front=meshes if self.behind_meshes else None,
        )

    def _follow(self, depsgraph: bpy.types.Depsgraph) -> None:
        """Read again the splats that play, and whatever has come."""
        for subject in self.splats.subjects:
            if subject.plays:
                self.splats.forget(subject.uid)
        self.splats.look_again()
        layer = cast(bpy.types.ViewLayer, depsgraph.view_layer)
        self.splats.update(lambda: _drawn_objects(layer), depsgraph, "exact")
        for subject in self.splats.subjects:
            armature = subject.reader.find() if subject.reader is not None else None
            if armature is not None and armature.mode == "EDIT":
                raise RenderError(
                    f"'{armature.name}' is in Edit Mode, which shows its rest pose; leave that mode first"
                )


def _drawn_objects(layer: bpy.types.ViewLayer) -> list[bpy.types.Object]:
    """Return the splat objects that render by themselves, and those that instances may show."""
    rendering = rendering_names(layer)
    return [
        object
        for object in bpy.data.objects
        if is_splat_data(object.data) and (object.name in rendering or may_be_instanced(object))
    ]
