"""Time of answering a pose live in Blender: reading it with its history, predicting, writing the skin bones.

Run: ``python benchmarks/bench_live.py [RIG.npz ...] [--runs 200]``, rigs as ``python -m gaussianimate rig``
writes them; without one, a body of 20 joints and 50 skin bones with 2,600 captured frames. Prints the median
and the slowest twentieth in milliseconds, by phase, for playback (the history comes from F-curves) and for
dragging a bone. "In all" is what an update takes longer with the answer than without, second pass included.
Set OPENBLAS_NUM_THREADS to the number of cores meant.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("BLENDER_USER_RESOURCES", tempfile.mkdtemp(prefix="gaussianimate-bench-"))

import bpy  # noqa: I001  (puts addon_utils on the path)
import addon_utils
import numpy as np
from bench_motion import body_rig
from mathutils import Quaternion

from gaussianimate.core.cloud import GaussianCloud
from gaussianimate.core.motion.learned import learn_motion
from gaussianimate.core.rigging.rig import Rig
from gaussianimate.core.rigging.rig_file import load_rig
from gaussianimate.core.skinning.skin import make_skin
from gaussianimate.gaussianimate_addon.armature import SKIN_BONE
from gaussianimate.gaussianimate_addon.motion_switch import pose_anew
from gaussianimate.gaussianimate_addon.point_cloud import cloud_to_point_cloud
from gaussianimate.gaussianimate_addon.rig_object import apply_rig
from gaussianimate.gaussianimate_addon.secondary.live import SESSION, present_poses, write_channels


def rigged(rig: Rig) -> bpy.types.Object:
    """Add splats with that rig to an empty scene; return the armature, which plays the captured joints."""
    bpy.ops.wm.read_homefile(app_template="", use_empty=True)
    scene, count = bpy.context.scene, len(rig.rest)
    scene.render.fps, scene.render.fps_base = round(rig.fps), round(rig.fps) / rig.fps
    cloud = GaussianCloud(
        rig.rest,
        np.tile(np.float32([1, 0, 0, 0]), (count, 1)),
        np.full((count, 3), 0.01, np.float32),
        np.ones(count, np.float32),
        np.zeros((count, 1, 3), np.float32),
    )
    splats = bpy.data.objects.new("splats", cloud_to_point_cloud(cloud, "splats"))
    scene.collection.objects.link(splats)
    skin = make_skin(rig.rest, rig.indices, rig.weights, bone_count=rig.bone_count)
    armature = apply_rig(bpy.context, splats, rig, skin, learn_motion(rig))
    splats.modifiers["Deform"].show_viewport = False  # what splats take is not meant here
    replay = armature.animation_data.action
    own = replay.copy()
    curves = own.layers[0].strips[0].channelbags[0].fcurves
    names = {bone.name for bone in armature.data.bones if SKIN_BONE in bone}
    for curve in list(curves):
        if curve.data_path.split('"')[1] in names:
            curves.remove(curve)
    pose_anew(armature)
    armature.animation_data.action = own
    armature.animation_data.action_slot = own.slots[0]
    return armature


def play(runs: int) -> list[float]:
    """Return the seconds that each of some frames takes to be shown."""
    scene, times = bpy.context.scene, []
    for frame in range(scene.frame_start + 20, scene.frame_start + 20 + runs):
        start = time.perf_counter()
        scene.frame_set(frame)
        times.append(time.perf_counter() - start)
    return times


def drag(armature: bpy.types.Object, runs: int) -> list[float]:
    """Return the seconds that each step of turning a bone takes to be shown."""
    times = []
    bone = next(b for b in armature.pose.bones if SKIN_BONE not in b.bone and b.parent is not None)
    layer = bpy.context.view_layer
    for step in range(runs):
        bone.rotation_quaternion = Quaternion((0.3, 0.5, 0.8), 0.005 * step)
        start = time.perf_counter()
        layer.update()
        times.append(time.perf_counter() - start)
    return times


def phases(armature: bpy.types.Object, runs: int, prepare: Callable[[int], None]) -> dict[str, list[float]]:
    """Return the seconds of each phase of answering poses that `prepare` makes."""
    times: dict[str, list[float]] = {"read pose and history": [], "predict": [], "write skin bones": []}
    depsgraph = bpy.context.evaluated_depsgraph_get()
    for run in range(runs):
        SESSION.paused = True
        prepare(run)
        SESSION.paused = False
        known = SESSION.of(armature)
        marks = [time.perf_counter()]
        poses = present_poses(armature, depsgraph, known, played=False)
        marks.append(time.perf_counter())
        answer = known.live.history(poses.rotations, poses.root_translations)
        marks.append(time.perf_counter())
        write_channels(armature, known, *known.bones.channels(answer.residuals))
        marks.append(time.perf_counter())
        for name, seconds in zip(times, np.diff(marks).tolist(), strict=True):
            times[name].append(seconds)
        bpy.context.view_layer.update()
    return times


def report(name: str, seconds: list[float]) -> None:
    """Print what something takes."""
    values = 1000 * np.array(seconds[5:])
    print(f"  {name:34s} median {np.median(values):7.2f} ms   95 % {np.percentile(values, 95):7.2f} ms")


def bench(rig: Rig, runs: int) -> None:
    """Print the times of one rig."""
    armature = rigged(rig)
    scene = bpy.context.scene
    runs = min(runs, rig.frame_count - 40)
    counts = f"{rig.frame_count} frames, {rig.joint_count} joints, {rig.bone_count} skin bones"
    print(f"{counts}, {'with' if SESSION.of(armature).live.predictor.kernel else 'without'} kernel")
    start = scene.frame_start + 20
    print(" playback")
    for name, seconds in phases(armature, runs, lambda run: scene.frame_set(start + run)).items():
        report(name, seconds)
    with_answer, without = play(runs), paused(lambda: play(runs))
    report("in all", [a - b for a, b in zip(with_answer, without, strict=True)])
    report("Blender's own frame change", without)
    print(" dragging a bone")
    bone = next(b for b in armature.pose.bones if SKIN_BONE not in b.bone and b.parent is not None)

    def turn(run: int) -> None:
        bone.rotation_quaternion = Quaternion((0.3, 0.5, 0.8), 0.005 * run)
        bpy.context.view_layer.update()

    for name, seconds in phases(armature, runs, turn).items():
        report(name, seconds)
    with_answer, without = drag(armature, runs), paused(lambda: drag(armature, runs))
    report("in all", [a - b for a, b in zip(with_answer, without, strict=True)])
    assert not SESSION.failures, SESSION.failures


def paused(task: Callable[[], list[float]]) -> list[float]:
    """Do something without answers."""
    SESSION.paused = True
    try:
        return task()
    finally:
        SESSION.paused = False


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rigs", nargs="*", type=Path)
    parser.add_argument("--runs", type=int, default=200)
    arguments = parser.parse_args()
    addon_utils.enable("gaussianimate", default_set=True)
    for path in arguments.rigs:
        bench(load_rig(path), arguments.runs)
    if not arguments.rigs:
        bench(body_rig(2600), arguments.runs)


if __name__ == "__main__":
    main()
