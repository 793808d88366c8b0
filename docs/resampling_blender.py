"""Draw docs/images/resampling_blender.png: needles, what Show Bent Splats shows, and the splats resampled.

Run with the project's Python: ``.venv/bin/python docs/resampling_blender.py``. The splats are those of
``docs/resampling.py``, bound to three bones in Blender and drawn as its viewports draw them.
"""

from __future__ import annotations

import sys
from pathlib import Path

import bpy
import gpu
import numpy as np
from mathutils import Matrix
from PIL import Image, ImageDraw, ImageFont

from gaussianimate.core.render.camera import Camera
from gaussianimate.core.skinning.skin import Skin
from gaussianimate.gaussianimate_addon.armature import edit_mode
from gaussianimate.gaussianimate_addon.deformer import add_deformer
from gaussianimate.gaussianimate_addon.drawer.display import drawn_objects, set_display
from gaussianimate.gaussianimate_addon.drawer.offscreen import draw_picture
from gaussianimate.gaussianimate_addon.drawer.viewport import DRAWER
from gaussianimate.gaussianimate_addon.point_cloud import cloud_to_point_cloud
from gaussianimate.gaussianimate_addon.skin_attributes import write_skin
from gaussianimate.gaussianimate_addon.weights.numbering import number_bones

OUT = Path(__file__).parent / "images" / "resampling_blender.png"
WIDTH, HEIGHT, FINER, GREY = 600, 500, 2, 0.24
JOINTS = ((0, 1.3), (1.3, 2.7), (2.7, 4))
EPSILON = 0.03


def main() -> None:
    """Bend the tube, show what will be split, split it."""
    import addon_utils

    sys.path.insert(0, str(Path(__file__).parent))
    import resampling as study

    addon_utils.enable("gaussianimate", default_set=True)
    bpy.ops.wm.read_homefile(app_template="", use_empty=True)
    gpu.init()
    bent_tube(study.tube(12, 12), study.Chain(0.35), study.pose(2.1, 1.5))
    panels = [picture()]
    bpy.ops.gaussianimate.show_bent(epsilon=EPSILON, budget=30)
    said = DRAWER.overlay.text
    panels.append(picture())
    bpy.ops.gaussianimate.resample(epsilon=EPSILON, budget=30)
    panels.append(picture())
    sheet = Image.new("RGB", (WIDTH * len(panels), HEIGHT))
    font = ImageFont.load_default(20)
    for i, (panel, title) in enumerate(zip(panels, ("posed", "Show Bent Splats", "resampled"), strict=True)):
        sheet.paste(panel.resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS), (i * WIDTH, 0))
        ImageDraw.Draw(sheet).text((i * WIDTH + 16, HEIGHT - 40), title, "white", font)
    sheet.quantize(256).save(OUT, optimize=True)
    print(said)
    print(OUT)


def bent_tube(cloud, field, transforms) -> None:
    """Add the tube, bound to three bones that are posed."""
    object = bpy.data.objects.new("tube", cloud_to_point_cloud(cloud, "tube"))
    data = bpy.data.armatures.new("bones")
    armature = bpy.data.objects.new("bones", data)
    for each in (object, armature):
        bpy.context.scene.collection.objects.link(each)
    with edit_mode(bpy.context, armature):
        for number, (head, tail) in enumerate(JOINTS):
            bone = data.edit_bones.new(f"bone {number}")
            bone.head, bone.tail = (head, 0, 0), (tail, 0, 0)
    number_bones(armature)
    indices, weights, gradients = field(cloud.positions.astype(float), np.arange(len(cloud)))
    write_skin(object.data, Skin(indices, weights.astype(np.float32), gradients.astype(np.float32)))
    add_deformer(object, armature)
    for bone, transform in zip(armature.pose.bones, transforms, strict=True):
        bone.matrix = Matrix([*transform.tolist(), (0, 0, 0, 1)]) @ bone.bone.matrix_local
    set_display(object, "DRAWER")
    bpy.context.view_layer.objects.active = object
    bpy.context.view_layer.update()


def picture() -> Image.Image:
    """Draw the scene as a viewport would, with the overlay there is."""
    bpy.context.view_layer.update()
    graph = bpy.context.view_layer.depsgraph
    DRAWER.splats.update(drawn_objects, graph, "exact")
    atlas, over = DRAWER.splats.atlas, DRAWER.overlay
    mask = None if over is None else over.texture(DRAWER.splats.subjects, atlas)
    camera = Camera.perspective(
        (1.6, -6.2, 1.9), (1.75, 0, -0.2), (0, 0, 1), 0.6, WIDTH * FINER, HEIGHT * FINER, 0.1, 100
    )
    rgba = draw_picture(atlas, DRAWER.splats.items(graph), camera, mask=mask).rgba[::-1]
    rgb = np.clip(rgba[..., :3] + GREY * (1 - rgba[..., 3:]), 0, 1)
    return Image.fromarray((rgb * 255).round().astype(np.uint8))


if __name__ == "__main__":
    main()
