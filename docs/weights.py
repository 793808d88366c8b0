"""Draw docs/images/weights.png: a static scan, a gesture on it, the weights it makes, a pose.

Run with the project's Python: ``.venv/bin/python docs/weights.py``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import bpy
import gpu
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from gaussianimate.core.render.camera import Camera
from gaussianimate.core.selection.preview import Preview
from gaussianimate.gaussianimate_addon.drawer.atlas import Source, build_atlas
from gaussianimate.gaussianimate_addon.drawer.draw import Item, Shading, Show
from gaussianimate.gaussianimate_addon.drawer.mask import Mask
from gaussianimate.gaussianimate_addon.drawer.offscreen import draw_picture
from gaussianimate.gaussianimate_addon.drawer.poses import marked_bones, pose_reader, read_transforms
from gaussianimate.gaussianimate_addon.point_cloud import point_cloud_to_cloud
from gaussianimate.gaussianimate_addon.skin_attributes import read_skin
from gaussianimate.gaussianimate_addon.weights.gesture_view import outlines_of
from gaussianimate.gaussianimate_addon.weights.layers import read_layers

OUT = Path(__file__).parent / "images" / "weights.png"
WIDTH, HEIGHT, FINER = 480, 640, 2  # of a panel, pixels; drawn this many times as fine
SPAN, MIDDLE = 2.02, 0.03  # metres a panel is high, and up to its middle
BONE, GREY = "upper_arm.L", 0.24
ORANGE, LINE = (255, 150, 40), (255, 255, 255)


def main() -> None:
    """Rig the scan, and picture it."""
    import addon_utils

    sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
    from static_scan import pose, rig, write_scan

    addon_utils.enable("gaussianimate", default_set=True)
    bpy.ops.wm.read_homefile(app_template="", use_empty=True)
    gpu.init()
    splats, armature = rig(write_scan())
    armature.data.bones.active = armature.data.bones[BONE]
    gesture = next(layer for layer in read_layers(splats).layers if layer.bone == BONE)
    panels = [picture(splats), picture(splats, gesture=gesture), picture(splats, Shading(show=Show.WEIGHT))]
    draw_bones(panels[0], armature)
    draw_outline(panels[1], gesture)
    pose(armature)
    panels.append(picture(splats))
    titles = ("a scan and bones", "a lasso, soft at its edge", f"weights of '{BONE}'", "posed")
    sheet = Image.new("RGB", (WIDTH * len(panels), HEIGHT))
    font = ImageFont.load_default(20)
    for i, (panel, title) in enumerate(zip(panels, titles, strict=True)):
        sheet.paste(panel.resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS), (i * WIDTH, 0))
        ImageDraw.Draw(sheet).text((i * WIDTH + 16, HEIGHT - 40), title, "white", font)
    sheet.save(OUT, optimize=True)
    print(OUT)


def camera() -> Camera:
    """Return the view of all panels: from the front, without perspective, as the gestures were drawn."""
    at = (0, 0, MIDDLE)
    return Camera.orthographic((0, -4, MIDDLE), at, (0, 0, 1), SPAN, WIDTH * FINER, HEIGHT * FINER, 0.01, 100)


def picture(splats: bpy.types.Object, shading: Shading | None = None, gesture=None) -> Image.Image:
    """Draw the splats as they are posed, with what a gesture selects."""
    bpy.context.view_layer.update()
    graph, reader = bpy.context.evaluated_depsgraph_get(), pose_reader(splats)
    source = Source(point_cloud_to_cloud(splats.data), read_skin(splats.data))
    marks = marked_bones(splats.find_armature() or splats.parent, len(reader.rows))
    matrix = np.array(splats.evaluated_get(graph).matrix_world, np.float64)
    item = Item(0, matrix, read_transforms(graph, splats, reader), marks=marks)
    atlas, mask = build_atlas([source]), None
    if gesture is not None:
        selected = Preview(gesture.viewpoint, source.cloud.positions).mask(gesture)
        mask = Mask(0, selected).texture([SimpleNamespace(uid=0)], atlas)
    rgba = draw_picture(atlas, [item], camera(), shading or Shading(), mask=mask).rgba[::-1]
    rgb = np.clip(rgba[..., :3] + GREY * (1 - rgba[..., 3:]), 0, 1)
    return Image.fromarray((rgb * 255).round().astype(np.uint8))


def spots(points) -> list[tuple[float, float]]:
    """Return where a panel shows places (N, 3) in the world, pixels, y down."""
    seen = camera()
    clip = (
        np.column_stack([np.asarray(points, float), np.ones(len(points))]) @ (seen.projection @ seen.view).T
    )
    ndc = clip[:, :2] / clip[:, 3:]
    return [((x + 1) / 2 * seen.width, (1 - y) / 2 * seen.height) for x, y in ndc]


def draw_bones(panel: Image.Image, armature: bpy.types.Object) -> None:
    """Draw the armature's bones as Blender's octahedra are seen."""
    pen = ImageDraw.Draw(panel, "RGBA")
    for bone in armature.pose.bones:
        head, tail = np.array(spots([bone.head, bone.tail]))
        along = tail - head
        waist, across = head + 0.12 * along, 0.1 * np.array([-along[1], along[0]])
        corners = [tuple(p) for p in (head, waist + across, tail, waist - across, head)]
        pen.polygon(corners, fill=(*ORANGE, 120))
        pen.line([*corners, corners[2]], fill=ORANGE, width=2 * FINER, joint="curve")
        for x, y in (head, tail):
            pen.ellipse((x - 4 * FINER, y - 4 * FINER, x + 4 * FINER, y + 4 * FINER), fill=ORANGE)


def draw_outline(panel: Image.Image, gesture) -> None:
    """Draw the gesture's outline, given in pixels of its own view."""
    line, view = outlines_of(gesture.shape)[0], gesture.viewpoint
    ndc = 2 * line / np.array(view.window[2:]) - 1
    back = np.linalg.inv(np.array(view.projection))
    flat = np.column_stack([ndc, np.zeros(len(ndc)), np.ones(len(ndc))]) @ back.T
    from_camera = np.array(bpy.data.objects["Front"].matrix_world)
    ImageDraw.Draw(panel).line(
        spots((flat @ from_camera.T)[:, :3]), fill=LINE, width=2 * FINER, joint="curve"
    )


if __name__ == "__main__":
    main()
