"""A static scan becomes a rig: an armature by hand, weights drawn through a camera, a pose.

Run with the project's Python: ``.venv/bin/python examples/static_scan.py``. Leaves ``build/scan/scan.blend``;
what it draws by a script is what the tools of the toolbar draw by mouse.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import bpy
from mathutils import Quaternion

OUT = Path(__file__).parents[1] / "build" / "scan"
SPLATS = 30_000
# Name, parent, head, tail, metres; those of the left side are mirrored.
BONES = (
    ("hips", "", (0, -0.02, 0.08), (0, -0.02, 0.26)),
    ("chest", "hips", (0, -0.02, 0.26), (0, 0.01, 0.70)),
    ("head", "chest", (0, 0.01, 0.70), (0, -0.03, 0.94)),
    ("upper_arm.L", "chest", (0.19, -0.01, 0.60), (0.35, -0.07, 0.41)),
    ("forearm.L", "upper_arm.L", (0.35, -0.07, 0.41), (0.56, -0.30, 0.21)),
    ("thigh.L", "hips", (0.10, -0.02, 0.06), (0.155, -0.03, -0.35)),
    ("shin.L", "thigh.L", (0.155, -0.03, -0.35), (0.20, 0.0, -0.74)),
)
# Bone, shape, points seen from the front: metres to the left and up. Each takes from its parent what it gets.
REGIONS = (
    (
        "chest",  # and what hangs from it, hands below the waist included
        "LASSO",
        ((1, 1.2), (1, -0.2), (0.42, -0.2), (0.3, 0.24), (-0.3, 0.24), (-0.42, -0.2), (-1, -0.2), (-1, 1.2)),
    ),
    ("head", "RECTANGLE", ((-0.3, 0.75), (0.3, 1.2))),
    (
        "upper_arm.L",
        "LASSO",
        (
            (0.17, 0.75),
            (0.2, 0.46),
            (0.3, 0.2),
            (0.48, 0.04),
            (0.68, 0.04),
            (0.72, 0.3),
            (0.56, 0.58),
            (0.38, 0.74),
        ),
    ),
    (
        "forearm.L",
        "LASSO",
        ((0.46, 0.52), (0.26, 0.33), (0.36, 0.14), (0.48, 0.04), (0.68, 0.04), (0.72, 0.3)),
    ),
    ("thigh.L", "LASSO", ((0, 0), (0, -1), (0.42, -1), (0.42, 0.1), (0.22, 0.13))),
    ("shin.L", "RECTANGLE", ((0, -1), (0.42, -0.34))),
)
SMOOTHNESS = 80.0  # pixels of the fade
SIZE, SPAN, MIDDLE = 1000, 2.0, 0.05  # of the camera's picture: pixels, metres, metres up


def main() -> None:
    """Write the scan, rig it, pose it, save it."""
    import addon_utils

    addon_utils.enable("gaussianimate", default_set=True)
    bpy.ops.wm.read_homefile(app_template="", use_empty=True)
    splats, armature = rig(write_scan())
    pose(armature)
    path = OUT / "scan.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    print(f"{path}: {len(splats.data.points):,} splats on {len(armature.data.bones)} bones")


def write_scan() -> Path:
    """Write one frame of the sample capture as a PLY file, as a scan would come."""
    sys.path.insert(0, str(Path(__file__).parent))
    from sample import load_sample

    from gaussianimate.core.formats import mesh_to_splats, write_cloud

    OUT.mkdir(parents=True, exist_ok=True)
    path = OUT / "scan.ply"
    write_cloud(mesh_to_splats(load_sample(), SPLATS).load_cloud(0), path)
    return path


def rig(scan: Path) -> tuple[bpy.types.Object, bpy.types.Object]:
    """Import the scan, bind it to an armature made by hand, draw weights; return both objects."""
    files = [{"name": scan.name}]
    bpy.ops.gaussianimate.import_capture(directory=f"{scan.parent}/", files=files, up="Y")
    splats = bpy.context.view_layer.objects.active
    armature = add_armature()
    camera = add_camera()
    select(splats)
    bpy.ops.gaussianimate.bind(armature=armature.name, method="EMPTY")
    draw_weights(camera)
    return splats, armature


def add_armature() -> bpy.types.Object:
    """Build the armature."""
    data = bpy.data.armatures.new("Body")
    armature = bpy.data.objects.new("Body", data)
    bpy.context.scene.collection.objects.link(armature)
    select(armature)
    bpy.ops.object.mode_set(mode="EDIT")
    for name, parent, head, tail in BONES:
        for side in (1, -1) if name.endswith(".L") else (1,):
            bone = data.edit_bones.new(opposite(name, side))
            bone.head, bone.tail = ((side * x, y, z) for x, y, z in (head, tail))
            if parent:
                bone.parent = data.edit_bones[opposite(parent, side)]
    bpy.ops.object.mode_set(mode="OBJECT")
    data.show_names = False
    armature.show_in_front = True
    return armature


def add_camera() -> bpy.types.Object:
    """Add the camera whose pixels the gestures are given in: from the front, without perspective."""
    data = bpy.data.cameras.new("Front")
    data.type, data.ortho_scale = "ORTHO", SPAN
    camera = bpy.data.objects.new("Front", data)
    camera.location, camera.rotation_euler = (0, -4, MIDDLE), (math.pi / 2, 0, 0)
    bpy.context.scene.collection.objects.link(camera)
    render = bpy.context.scene.render
    render.resolution_x = render.resolution_y = SIZE
    bpy.context.view_layer.update()
    return camera


def draw_weights(camera: bpy.types.Object) -> None:
    """Draw: the root gets everything, then each bone takes its part from its parent."""
    parents = {name: parent for name, parent, _, _ in BONES}
    draw(camera, "hips", "RECTANGLE", ((-1, -1), (1, 1.2)))
    for bone, shape, points in REGIONS:
        for side in (1, -1) if bone.endswith(".L") else (1,):
            seen = [(side * x, z) for x, z in points]
            draw(camera, opposite(bone, side), shape, seen)
            draw(camera, opposite(parents[bone], side), shape, seen, "SUBTRACT")


def draw(camera: bpy.types.Object, bone: str, shape: str, points, operation: str = "ADD") -> None:
    """Draw one gesture that goes through everything."""
    bpy.ops.gaussianimate.add_selection_layer(
        bone=bone,
        shape=shape,
        points=json.dumps([pixel(*point) for point in points]),
        view=camera.name,
        smoothness=SMOOTHNESS,
        operation=operation,
        through=True,
    )


def pixel(x: float, z: float) -> tuple[float, float]:
    """Return where the camera sees a place (metres), pixels, y up."""
    return SIZE / 2 + x * SIZE / SPAN, SIZE / 2 + (z - MIDDLE) * SIZE / SPAN


def pose(armature: bpy.types.Object) -> None:
    """Lift an arm and a leg, lean a little."""
    for name, axis, angle in (
        ("chest", (0, 1, 0), -0.08),
        ("head", (0, 0, 1), 0.35),
        ("upper_arm.L", (0, 1, 0), -0.95),
        ("forearm.L", (0, 1, 0), -0.75),
        ("upper_arm.R", (0, 1, 0), -0.25),
        ("forearm.R", (1, 0, 0), -0.5),
        ("thigh.R", (1, 0, 0), -0.7),
        ("shin.R", (1, 0, 0), 1.1),
    ):
        bone = armature.pose.bones[name]
        rest = bone.bone.matrix_local.to_quaternion()
        bone.rotation_mode = "QUATERNION"
        bone.rotation_quaternion = rest.inverted() @ Quaternion(axis, angle) @ rest
    bpy.context.view_layer.update()


def opposite(name: str, side: int) -> str:
    """Return the bone's name on a side, -1 for the right one."""
    return name if side > 0 else name.replace(".L", ".R")


def select(object: bpy.types.Object) -> None:
    """Select this object only."""
    bpy.context.view_layer.update()
    for other in bpy.context.view_layer.objects:
        other.select_set(other == object)
    bpy.context.view_layer.objects.active = object


if __name__ == "__main__":
    main()
