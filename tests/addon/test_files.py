"""A rigged file is plain Blender data: it reloads, plays and renders where this add-on is absent."""

import json
import subprocess
import sys
import textwrap

import bpy
import numpy as np
import pytest
from compare import assert_equal_bits, assert_same_splats, evaluated
from test_rig_object import rigged

from gaussianimate.core.deform.deform import deform_cloud
from gaussianimate.gaussianimate_addon.bake import posed_cloud
from gaussianimate.gaussianimate_addon.deformer import bind_is_stale, deformer_armature

# Runs in a process of its own, where nothing of this package may be imported.
STRANGER = """
    import json, sys
    import bpy
    import numpy as np

    bpy.ops.wm.open_mainfile(filepath=sys.argv[1])
    frames = {}
    for frame in json.loads(sys.argv[2]):
        bpy.context.scene.frame_set(frame)
        data = bpy.data.objects["bar"].evaluated_get(bpy.context.evaluated_depsgraph_get()).data
        positions = np.empty(3 * len(data.points), np.float32)
        data.attributes["position"].data.foreach_get("vector", positions)
        frames[frame] = positions.tolist()
    assert "gaussianimate" not in sys.modules
    print("RESULT" + json.dumps(frames))
"""


@pytest.fixture
def saved(scene, tmp_path):
    object, _, rig, skin, cloud = rigged(scene)
    path = tmp_path / "rigged.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    return path, rig, skin, cloud


def test_reloaded_file_replays_poses_and_bakes(saved):
    path, rig, skin, cloud = saved
    bpy.ops.wm.open_mainfile(filepath=str(path))
    object, scene = bpy.data.objects["bar"], bpy.context.scene
    assert bind_is_stale(object) is None
    for f in (0, 3, 6):
        scene.frame_set(scene.frame_start + f)
        expected = deform_cloud(cloud, skin, rig.bone_transforms[f])
        assert_same_splats(evaluated(object), expected)
        assert_same_splats(posed_cloud(bpy.context.evaluated_depsgraph_get(), object), expected)
    deformer_armature(object).animation_data.action = None
    for bone in deformer_armature(object).pose.bones:
        bone.matrix_basis.identity()
    bpy.context.view_layer.update()
    assert_equal_bits(evaluated(object), cloud)


def test_a_blender_without_this_add_on_plays_it(saved, tmp_path):
    path, rig, skin, cloud = saved
    script = tmp_path / "stranger.py"
    script.write_text(textwrap.dedent(STRANGER), encoding="utf-8")
    command = [sys.executable, str(script), str(path), json.dumps([1, 4, 8])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout.split("RESULT")[1].splitlines()[0])
    diagonal = np.linalg.norm(np.ptp(cloud.positions, axis=0))
    for frame, positions in result.items():
        expected = deform_cloud(cloud, skin, rig.bone_transforms[int(frame) - 1]).positions
        assert np.abs(np.reshape(positions, (-1, 3)) - expected).max() < 1e-4 * diagonal


def test_appended_rig_works(saved):
    path, rig, skin, cloud = saved
    bpy.ops.wm.read_homefile(app_template="", use_empty=True)
    with bpy.data.libraries.load(str(path), link=False) as (_, wanted):
        wanted.objects = ["bar"]
    object, scene = wanted.objects[0], bpy.context.scene
    for each in (object, deformer_armature(object)):
        scene.collection.objects.link(each)
    scene.frame_set(4)
    assert_same_splats(evaluated(object), deform_cloud(cloud, skin, rig.bone_transforms[3]))
