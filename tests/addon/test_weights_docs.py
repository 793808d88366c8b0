"""What docs/weights.md and examples/static_scan.py say can be done from scripts, done."""

import importlib.util
import re
from pathlib import Path

import bpy
import numpy as np
from drawn_weights import dense
from rigs import make_cloud

from gaussianimate.core.formats import write_cloud
from gaussianimate.gaussianimate_addon.attributes import read_attribute
from gaussianimate.gaussianimate_addon.bake import posed_cloud
from gaussianimate.gaussianimate_addon.deform_nodes import bone_names
from gaussianimate.gaussianimate_addon.deformer import deformer
from gaussianimate.gaussianimate_addon.skin_attributes import read_skin
from gaussianimate.gaussianimate_addon.weights.layers import read_layers

ROOT = Path(__file__).parents[2]


def by_bone(splats):
    """Return the weights (N,) of each bone by name."""
    names = bone_names(deformer(splats).node_group)
    return dict(zip(names, dense(read_skin(splats.data), len(names)).T, strict=True))


def test_the_script_of_the_guide(empty_scene, tmp_path):
    """It runs as it stands beside a scan, and each half of the scan gets its bone."""
    cloud = make_cloud(500)
    cloud.positions[:] = cloud.positions[:, [1, 2, 0]] - (0, 0, 1.5)  # upright about the origin
    write_cloud(cloud, tmp_path / "scan.ply")
    path = str(tmp_path / "scan.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path)
    (script,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "weights.md").read_text(), re.S)
    exec(compile(script, "docs/weights.md", "exec"), {})
    bpy.ops.wm.open_mainfile(filepath=path)
    splats = bpy.data.objects["scan"]
    height, found = read_attribute(splats.data, "position")[:, 2], by_bone(splats)
    assert found["lower"][height < -0.16].min() > 0.999 and found["upper"][height > 0.16].min() > 0.999
    np.testing.assert_allclose(found["lower"] + found["upper"], 1, atol=1e-5)
    assert ((found["lower"] > 0.1) & (found["upper"] > 0.1)).any(), "soft where they meet"


def test_the_static_scan_of_the_examples(empty_scene, tmp_path, monkeypatch):
    """Eleven bones by gestures: each holds its part, all of it is held, limbs follow."""
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    spec = importlib.util.spec_from_file_location("static_scan", ROOT / "examples" / "static_scan.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    monkeypatch.setattr(example, "OUT", tmp_path)
    monkeypatch.setattr(example, "SPLATS", 3000)
    splats, armature = example.rig(example.write_scan())
    found = by_bone(splats)
    assert len(found) == 11 and len(read_layers(splats).layers) == 1 + 2 * 10
    np.testing.assert_allclose(sum(found.values()), 1, atol=1e-5)
    assert all((weights > 0.9).sum() > 50 for weights in found.values())
    before = posed(splats)
    example.pose(armature)
    moved = np.linalg.norm(posed(splats) - before, axis=1)
    still = found["hips"] > 0.999
    assert moved[still].max() < 1e-3 and moved[found["forearm.L"] > 0.9].min() > 0.3
    lengths = np.abs(np.log(splat_sizes(splats) / read_attribute(splats.data, "scale").max(axis=1)))
    assert np.quantile(lengths, 0.98) < np.log(3), "no torn splats"


def posed(splats):
    bpy.context.view_layer.update()
    return posed_cloud(bpy.context.evaluated_depsgraph_get(), splats, "OBJECT").positions


def splat_sizes(splats):
    return posed_cloud(bpy.context.evaluated_depsgraph_get(), splats, "OBJECT").scales.max(axis=1)
