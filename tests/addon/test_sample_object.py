"""Animated meshes of Blender become captures: topology kept, colours, frame restored."""

import bpy
import numpy as np
import pytest

from gaussianimate.core.errors import Cancelled, CaptureError
from gaussianimate.gaussianimate_addon.sample_object import sample_mesh_object


def add_grid(scene, size=4):
    bpy.ops.mesh.primitive_grid_add(x_subdivisions=size, y_subdivisions=size)
    return bpy.context.object


def key(object, attribute, frame, value):
    setattr(object, attribute, value)
    object.keyframe_insert(attribute, frame=frame)


def co(object, frame, scene):
    """Positions the slow way, vertex by vertex."""
    scene.frame_set(frame)
    evaluated = object.evaluated_get(bpy.context.evaluated_depsgraph_get())
    return np.array([evaluated.matrix_world @ v.co for v in evaluated.data.vertices])


@pytest.fixture
def wave(scene):
    """A grid that a modifier and a shape key bend while the object moves."""
    grid = add_grid(scene)
    grid.shape_key_add(name="Basis")
    shape = grid.shape_key_add(name="Up")
    for i, point in enumerate(shape.data):
        point.co.z += 0.1 * i
    shape.value = 0
    shape.keyframe_insert("value", frame=1)
    shape.value = 1
    shape.keyframe_insert("value", frame=5)
    bend = grid.modifiers.new("Bend", "SIMPLE_DEFORM")
    bend.deform_method = "TWIST"
    bend.angle = 0.5
    key(grid, "location", 1, (0, 0, 0))
    key(grid, "location", 5, (1, 2, 3))
    return grid


def test_frames_are_the_evaluated_mesh(scene, wave):
    scene.frame_set(3, subframe=0.25)
    capture = sample_mesh_object(bpy.context, wave, 1, 5)
    assert (scene.frame_current, scene.frame_subframe) == (3, 0.25)
    assert capture.frame_count == 5
    assert capture.fps == scene.render.fps
    for f in range(5):
        np.testing.assert_allclose(capture.positions[f], co(wave, 1 + f, scene), atol=1e-5)
    assert np.ptp(capture.positions, axis=0).max() > 1
    assert capture.faces.shape == (2 * 16, 3)
    assert capture.colors is None


def test_object_space_leaves_the_object_motion_out(scene, wave):
    inside = sample_mesh_object(bpy.context, wave, 1, 5, space="OBJECT")
    outside = sample_mesh_object(bpy.context, wave, 1, 5)
    np.testing.assert_allclose(inside.positions[4] + [1, 2, 3], outside.positions[4], atol=1e-5)


@pytest.mark.parametrize("kind", ["abc", "usdc"])
def test_caches_are_sampled(scene, wave, tmp_path, kind):
    path = tmp_path / f"wave.{kind}"
    scene.frame_start, scene.frame_end = 1, 5
    expected = sample_mesh_object(bpy.context, wave, 1, 5)
    if kind == "abc":
        bpy.ops.wm.alembic_export(filepath=str(path), start=1, end=5)
    else:
        bpy.ops.wm.usd_export(filepath=str(path), export_animation=True, export_shapekeys=False)
    bpy.ops.wm.read_homefile(app_template="", use_empty=True)
    bpy.context.scene.render.fps = 24
    if kind == "abc":
        bpy.ops.wm.alembic_import(filepath=str(path), as_background_job=False)
    else:
        bpy.ops.wm.usd_import(filepath=str(path))
    (cached,) = [o for o in bpy.data.objects if o.type == "MESH"]
    assert [m.type for m in cached.modifiers] == ["MESH_SEQUENCE_CACHE"]
    read = sample_mesh_object(bpy.context, cached, 1, 5)
    np.testing.assert_allclose(read.positions, expected.positions, atol=1e-4)


def test_changing_topology_names_the_frame(scene):
    grid = add_grid(scene)
    mask = grid.modifiers.new("Build", "BUILD")
    mask.frame_start, mask.frame_duration = 1, 10
    with pytest.raises(CaptureError, match=r"frame \d+"):
        sample_mesh_object(bpy.context, grid, 5, 8)


def test_other_objects_and_empty_meshes_are_refused(scene):
    light = bpy.data.objects.new("lamp", bpy.data.lights.new("lamp", "POINT"))
    with pytest.raises(CaptureError, match="lamp"):
        sample_mesh_object(bpy.context, light, 1, 2)
    empty = bpy.data.objects.new("nothing", bpy.data.meshes.new("nothing"))
    scene.collection.objects.link(empty)
    with pytest.raises(CaptureError, match="nothing"):
        sample_mesh_object(bpy.context, empty, 1, 2)
    with pytest.raises(CaptureError, match="and none of number 2147483647"):
        sample_mesh_object(bpy.context, empty, 1, 2**31 - 1)


def test_cancelling_restores_the_frame(scene, wave):
    def stop(stage, fraction):
        if fraction > 0.5:
            raise Cancelled

    scene.frame_set(2)
    with pytest.raises(Cancelled):
        sample_mesh_object(bpy.context, wave, 1, 5, progress=stop)
    assert scene.frame_current == 2


def test_colour_attribute(scene):
    grid = add_grid(scene)
    attribute = grid.data.color_attributes.new("Col", "BYTE_COLOR", "POINT")
    wanted = np.random.default_rng(0).uniform(size=(len(grid.data.vertices), 4)).astype(np.float32)
    attribute.data.foreach_set("color_srgb", wanted.ravel())
    grid.data.color_attributes.active_color = attribute
    colors = sample_mesh_object(bpy.context, grid, 1, 1).colors
    np.testing.assert_allclose(colors, wanted[:, :3], atol=1 / 254)


def test_base_colour_image(scene):
    grid = add_grid(scene, size=8)
    image = bpy.data.images.new("halves", 16, 16)
    pixels = np.zeros((16, 16, 4), np.float32)
    pixels[:, :8], pixels[:, 8:] = (1, 0.5, 0, 1), (0, 0.25, 1, 1)
    image.pixels.foreach_set(pixels.ravel())
    material = bpy.data.materials.new("M")
    tree = material.node_tree
    texture = tree.nodes.new("ShaderNodeTexImage")
    texture.image = image
    tree.links.new(texture.outputs["Color"], tree.nodes["Principled BSDF"].inputs["Base Color"])
    grid.data.materials.append(material)
    capture = sample_mesh_object(bpy.context, grid, 1, 1)
    left, right = capture.positions[0, :, 0] < -0.1, capture.positions[0, :, 0] > 0.1
    np.testing.assert_allclose(capture.colors[left] - [1, 0.5, 0], 0, atol=0.01)
    np.testing.assert_allclose(capture.colors[right] - [0, 0.25, 1], 0, atol=0.01)


def test_plain_base_colour_is_converted_to_display(scene):
    grid = add_grid(scene)
    material = bpy.data.materials.new("M")
    material.node_tree.nodes["Principled BSDF"].inputs["Base Color"].default_value = (0.214, 1, 0, 1)
    grid.data.materials.append(material)
    colors = sample_mesh_object(bpy.context, grid, 1, 1).colors
    np.testing.assert_allclose(colors, np.broadcast_to([0.5, 1, 0], colors.shape), atol=0.002)
