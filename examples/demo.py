"""The main job on the sample capture, through the add-on's own operators.

Run by ``make demo``. Leaves in ``demo/``: the capture as a splat PLY sequence, ``demo.blend``, the baked PLY
frames and ``demo.png`` (a capture frame, a new pose, the skeleton), and prints a table.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# A clean Blender: the user's own settings and extensions neither matter nor change.
os.environ.setdefault("BLENDER_USER_RESOURCES", tempfile.mkdtemp(prefix="gaussianimate-demo-"))
sys.path.insert(0, str(Path(__file__).parent))

import bpy  # noqa: I001  (puts addon_utils on the path)
import addon_utils
import numpy as np
from mathutils import Vector
from new_pose import key_new_pose
from picture import GHOST_OPACITY, Picture
from sample import load_sample

from gaussianimate.core.formats import mesh_to_splats, read_cloud, write_sequence
from gaussianimate.gaussianimate_addon.bake import posed_cloud
from gaussianimate.gaussianimate_addon.point_cloud import point_cloud_to_cloud

DEMO = Path(__file__).parents[1] / "demo"
SPLATS = 30_000
SHOWN_FRAME = 92  # of the capture
POSE_FRAMES = 12

seconds: dict[str, float] = {}


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Time a stage of the job and say that it runs."""
    print(f"== {name}", flush=True)
    start = time.perf_counter()
    yield
    seconds[name] = time.perf_counter() - start


def write_capture() -> list[Path]:
    """Write the sample as a splat PLY sequence, once, and return its files in order."""
    folder, mesh = DEMO / "capture", load_sample()
    if len(list(folder.glob("*.ply"))) != mesh.frame_count:
        with stage("write sample"):
            splats = mesh_to_splats(mesh, SPLATS)
            clouds = (splats.load_cloud(frame) for frame in range(mesh.frame_count))
            write_sequence(clouds, folder, "human", first_frame=0, frame_count=mesh.frame_count)
    return sorted(folder.glob("*.ply"))


def posed(splats: bpy.types.Object, frame: int):
    """Return the cloud of the rigged object at a scene frame, in its own space."""
    bpy.context.scene.frame_set(frame)
    return posed_cloud(bpy.context.evaluated_depsgraph_get(), splats, "OBJECT")


def replay_error(splats: bpy.types.Object, files: list[Path]) -> float:
    """Return the RMS distance of the posed splats to nine files, in per cent of the rest diagonal."""
    start, squared = bpy.context.scene.frame_start, []
    for index in np.linspace(0, len(files) - 1, 9).astype(int):
        truth = read_cloud(files[index])[0].positions
        squared.append(((posed(splats, start + int(index)).positions - truth) ** 2).sum(axis=1).mean())
    diagonal = np.linalg.norm(np.ptp(read_cloud(files[0])[0].positions, axis=0))
    return 100 * float(np.sqrt(np.mean(squared)) / diagonal)


def main() -> None:
    """Run the job and print the table."""
    DEMO.mkdir(exist_ok=True)
    addon_utils.enable("gaussianimate", default_set=True)
    bpy.ops.wm.read_homefile(app_template="", use_empty=True)
    files = write_capture()
    operators, scene = bpy.ops.gaussianimate, bpy.context.scene

    with stage("import"):
        operators.import_capture(
            directory=str(DEMO / "capture"), files=[{"name": f.name} for f in files], up="Y"
        )
        splats = bpy.context.object
    with stage("rig"):
        operators.build_rig(max_bones=50)
        armature = bpy.context.object
    with stage("replay"):
        error = replay_error(splats, files)
        shown = posed(splats, scene.frame_start + SHOWN_FRAME)

    with stage("pose"):
        operators.set_motion(motion="POSE")
        key_new_pose(armature, scene.frame_start, scene.frame_start + POSE_FRAMES - 1)
        bpy.ops.object.mode_set(mode="OBJECT")
        new = posed(splats, scene.frame_start + POSE_FRAMES - 1)
    with stage("bake"):
        scene.frame_end = scene.frame_start + POSE_FRAMES - 1
        operators.bake_ply(
            filepath=f"{DEMO / 'baked'}{os.sep}", frame_start=scene.frame_start, frame_end=scene.frame_end
        )
    with stage("render"):
        picture = Picture()
        picture.add_figure("captured frame, replayed", shown, splats.matrix_world)
        picture.add_figure("new pose", new, splats.matrix_world)
        ghost = picture.add_figure("skeleton in the new pose", new, splats.matrix_world, GHOST_OPACITY)
        offset = ghost @ splats.matrix_world.inverted()
        picture.add_bones(armature, "Skeleton", offset @ armature.matrix_world)
        picture.render(DEMO / "demo.png")
    add_camera(splats)
    bpy.context.view_layer.objects.active = armature
    operators.set_display(display="DRAWER")  # once a window opens the file; until then it shows natively
    bpy.ops.wm.save_as_mainfile(filepath=str(DEMO / "demo.blend"), compress=True)
    print_table(splats, armature, len(files), error)


def add_camera(splats: bpy.types.Object) -> None:
    """Look at the whole figure from the front."""
    corners = np.array([splats.matrix_world @ Vector(corner) for corner in splats.bound_box])
    low, high = corners.min(axis=0), corners.max(axis=0)
    camera = bpy.data.objects.new("Camera", bpy.data.cameras.new("Camera"))
    bpy.context.scene.collection.objects.link(camera)
    camera.data.lens = 50
    middle, size = (low + high) / 2, (high - low).max()
    camera.location = (middle[0], low[1] - 3.1 * size, middle[2])
    camera.rotation_euler = (np.pi / 2, 0, 0)
    bpy.context.scene.camera = camera


def print_table(splats: bpy.types.Object, armature: bpy.types.Object, frames: int, error: float) -> None:
    """Print what was made and how long it took."""
    bones = {name: len(armature.data.collections[name].bones) for name in ("Skeleton", "Skin bones")}
    rows = [
        ("splats", f"{len(point_cloud_to_cloud(splats.data)):,}"),
        ("frames", f"{frames}"),
        ("skin bones", f"{bones['Skin bones']}"),
        ("joints that move", f"{bones['Skeleton']}"),
        ("replay error", f"{error:.3f} % of the diagonal"),
        *((f"seconds: {name}", f"{duration:.1f}") for name, duration in seconds.items()),
    ]
    print("\n" + "\n".join(f"{name:<24}{value:>28}" for name, value in rows))
    print(f"\nin {DEMO}: demo.blend, demo.png, baked/, capture/")


if __name__ == "__main__":
    main()
