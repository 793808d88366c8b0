"""Draw docs/images/overlays.png: what the drawer shows a rigger, of the rig that `make demo` leaves.

Run with the project's Python: ``.venv/bin/python docs/overlays.py``.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import bpy
import gpu
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from gaussianimate.core.render.camera import Camera
from gaussianimate.core.skinning.skin import Skin
from gaussianimate.gaussianimate_addon.armature import JOINT, SKIN_BONE, indexed_bones
from gaussianimate.gaussianimate_addon.deformer import deformer_armature
from gaussianimate.gaussianimate_addon.drawer.atlas import Source, build_atlas
from gaussianimate.gaussianimate_addon.drawer.draw import Item, Shading, Show
from gaussianimate.gaussianimate_addon.drawer.offscreen import draw_picture
from gaussianimate.gaussianimate_addon.drawer.poses import marked_bones, pose_reader, read_transforms
from gaussianimate.gaussianimate_addon.point_cloud import is_splat_data, point_cloud_to_cloud
from gaussianimate.gaussianimate_addon.skin_attributes import read_skin

ROOT = Path(__file__).parents[1]
OUT = ROOT / "docs" / "images" / "overlays.png"
WIDTH, HEIGHT, COLUMNS = 480, 540, 3
GREY = 0.24
FRAME = 8


def main() -> None:
    """Draw and save the contact sheet."""
    gpu.init()
    bpy.ops.wm.open_mainfile(filepath=str(ROOT / "demo" / "demo.blend"))
    scene = bpy.context.scene
    scene.frame_set(FRAME)
    object = next(o for o in scene.objects if is_splat_data(o.data))
    armature = deformer_armature(object)
    graph = bpy.context.evaluated_depsgraph_get()
    source = Source(point_cloud_to_cloud(object.data), read_skin(object.data))
    matrix = np.array(object.evaluated_get(graph).matrix_world, np.float64)
    reader = pose_reader(object)
    shin = shin_bone(armature)
    armature.data.bones.active = shin
    marks = marked_bones(armature, len(reader.rows))
    item = Item(0, matrix, read_transforms(graph, object, reader), marks=marks)
    world = source.cloud.positions @ matrix[:3, :3].T + matrix[:3, 3]
    middle, height = (world.min(axis=0) + world.max(axis=0)) / 2, np.ptp(world[:, 2])
    knee = np.array(armature.matrix_world @ armature.pose.bones[shin.name].head)
    whole = camera(middle, height, 1.75)
    near, waist = camera(knee, height, 0.75), camera(middle + (0, 0, 0.2 * height), height, 0.5)
    freed = replace(source, skin=without_bones(source.skin, np.flatnonzero(marks)))
    panels = (
        ("the splats", source, whole, Shading()),
        (f"weights of '{shin.name}'", source, whole, Shading(show=Show.WEIGHT)),
        ("their gradients", source, near, Shading(show=Show.WEIGHT, gradients=True)),
        ("splats that no bone holds", freed, whole, Shading(mark_unweighted=True)),
        ("stretch", source, whole, Shading(show=Show.STRETCH)),
        ("outlines", source, waist, Shading(outlines=True)),
    )
    sheet = Image.new("RGB", (WIDTH * COLUMNS, HEIGHT * -(-len(panels) // COLUMNS)))
    font = ImageFont.load_default(20)
    for i, (title, shown, view, shading) in enumerate(panels):
        rgba = draw_picture(build_atlas([shown]), [item], view, shading).rgba[::-1]
        rgb = np.clip(rgba[..., :3] + GREY * (1 - rgba[..., 3:]), 0, 1)
        corner = (i % COLUMNS * WIDTH, i // COLUMNS * HEIGHT)
        sheet.paste(Image.fromarray((rgb * 255).round().astype(np.uint8)), corner)
        ImageDraw.Draw(sheet).text((corner[0] + 14, corner[1] + HEIGHT - 36), title, "white", font)
    sheet.quantize(256).save(OUT, optimize=True)
    print(OUT)


def shin_bone(armature: bpy.types.Object) -> bpy.types.Bone:
    """Return the lowest bone of the skeleton that hangs from another and carries splats."""
    bones = [b for b in indexed_bones(armature, JOINT) if any(SKIN_BONE in child for child in b.children)]
    to_world = armature.matrix_world
    return min((b for b in bones if b.parent), key=lambda bone: (to_world @ bone.tail_local).z)


def camera(target: np.ndarray, height: float, distance: float) -> Camera:
    """Look at a point of the figure from the front and a little from the side."""
    eye = target + np.array([0.45, -1.0, 0.15]) * height * distance
    return Camera.perspective(eye, target, (0, 0, 1), 0.6, WIDTH, HEIGHT, 0.01, 100)


def without_bones(skin: Skin, bones: np.ndarray) -> Skin:
    """Return the skin as it is where nobody holds what these bones held mostly."""
    held = (skin.weights * np.isin(skin.indices, bones)).sum(axis=1, keepdims=True) > 0.5
    return replace(skin, indices=np.where(held, -1, skin.indices))


if __name__ == "__main__":
    main()
