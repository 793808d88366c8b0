"""Layers looked at again in the view they were drawn in: what they cover there is what they select."""

import json
import subprocess
import sys

import bpy
import numpy as np
import pytest
from drawn_weights import PLACE, add_armature, add_splats, select
from mathutils import Euler, Matrix, Quaternion, Vector

from gaussianimate.core.selection.viewpoint import Viewpoint
from gaussianimate.gaussianimate_addon.attributes import read_attribute
from gaussianimate.gaussianimate_addon.weights.gestures import make_shape, region_viewpoint
from gaussianimate.gaussianimate_addon.weights.layer_list import layer_list
from gaussianimate.gaussianimate_addon.weights.layers import read_layers, write_layers
from gaussianimate.gaussianimate_addon.weights.pixel_map import pixel_map
from gaussianimate.gaussianimate_addon.weights.reopen import restore_view, show_view, view_state
from gaussianimate.gaussianimate_addon.weights.views import viewport

ops = bpy.ops.gaussianimate
BOX = [[200, 150], [460, 330]]


@pytest.fixture
def stage(empty_scene, device):
    """Bound splats, and the only 3D viewport of the window's screen."""
    object, armature = add_splats(empty_scene), add_armature(empty_scene)
    select(object)
    ops.bind(armature="hand made", method="EMPTY")
    return object, armature


def pixels(object, view, region):
    """Where Blender's own matrices show the splats as they stand, in the region."""
    world = np.array(object.matrix_world)
    matrix = np.array(view.window_matrix) @ np.array(view.view_matrix) @ world
    p = read_attribute(object.data, "position").astype(float)
    clip = np.column_stack([p, np.ones(len(p))]) @ matrix.T
    return (clip[:, :2] / clip[:, 3:] + 1) / 2 * [region.width, region.height]


def draw(object, view, points=BOX, shape="RECTANGLE", **options):
    text = view if isinstance(view, str) else json.dumps(view.to_dict())
    given = {"bone": "arm.L", "smoothness": 30.0, "through": True} | options
    ops.add_selection_layer(shape=shape, points=json.dumps(points), view=text, **given)
    layer_list(object).active = len(read_layers(object).layers) - 1
    return read_layers(object).layers[-1]


def turn_view(object, view, space, flat):
    view.view_perspective = "ORTHO" if flat else "PERSP"
    space.lens = 60
    view.view_location = object.matrix_world @ Vector((1.2, 0.1, 0))
    view.view_rotation = Euler((0.9, 0.2, 0.7)).to_quaternion()
    view.view_distance = 7.0
    view.update()


def leave(view, space):
    """Go to another place altogether."""
    view.view_perspective, space.lens = "PERSP", 35
    view.view_location, view.view_distance = (5, 5, 5), 23.0
    view.view_rotation = Quaternion((0, 1, 0), 2.0)
    view.update()


def agrees(object, layer, tolerance=0.05):
    """The stored pixels, scaled, are those the viewport shows; returns the map."""
    space, region, view = viewport(bpy.context)
    found = pixel_map(region_viewpoint(object, region, view), layer.viewpoint)
    seen = layer.viewpoint.project(read_attribute(object.data, "position").astype(float))
    np.testing.assert_allclose(
        found.to_layer(pixels(object, view, region)), np.stack([seen.x, seen.y], axis=1), atol=tolerance
    )
    return found


def covered(object, layer, found):
    """Splats within the layer's outline as it is drawn over the region, and within the layer."""
    _, region, view = viewport(bpy.context)
    corners = found.to_region(BOX)
    shown = make_shape("RECTANGLE", corners)
    at = pixels(object, view, region)
    seen = layer.viewpoint.project(read_attribute(object.data, "position").astype(float))
    inside = layer.shape.distance(seen.x, seen.y, normals=False).value
    outline = shown.distance(at[:, 0], at[:, 1], normals=False).value
    clear = np.abs(inside) > 0.1  # pixels of the layer
    np.testing.assert_array_equal(outline[clear] < 0, inside[clear] < 0)
    assert 10 < (inside < 0).sum() < len(at) - 10


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("moved", ["", "armature", "larger"])
def test_from_the_viewport_itself(stage, flat, moved):
    object, armature = stage
    space, region, view = viewport(bpy.context)
    turn_view(object, view, space, flat)
    at = pixels(object, view, region).mean(axis=0)
    drawn_in = region_viewpoint(object, region, view)
    layer = draw(object, drawn_in, (at + [[-90, -60], [120, 70]]).tolist())
    leave(view, space)
    if moved:
        change = Matrix.Translation((3, -1, 2)) @ Matrix.Rotation(1.1, 4, (1, 2, 3))
        armature.matrix_world = change @ armature.matrix_world
        if moved == "larger":
            armature.scale *= 2.5
        bpy.context.view_layer.update()
        assert np.abs(np.array(object.matrix_world) - np.array(PLACE)).max() > 1
    assert ops.view_selection_layer() == {"FINISHED"}
    assert view.view_perspective == ("ORTHO" if flat else "PERSP")
    found = agrees(object, layer)
    np.testing.assert_allclose(found.scale, 1, atol=1e-4), "the same region"
    np.testing.assert_allclose(found.offset, 0, atol=0.1)


@pytest.mark.parametrize("window", [(400, 300), (300, 900), (1900, 300)])
@pytest.mark.parametrize("flat", [False, True])
def test_regions_of_other_proportions_show_the_whole_window(stage, flat, window):
    object, _ = stage
    width, height = window
    tall = 0.004 * height if flat else 0.35
    wide = tall * width / height
    projection = (
        [[1 / wide, 0, 0, 0], [0, 1 / tall, 0, 0], [0, 0, -0.1, 0], [0, 0, 0, 1]]
        if flat
        else [[1 / wide, 0, 0, 0], [0, 1 / tall, 0, 0], [0, 0, -1, -0.2], [0, 0, -1, 0]]
    )
    eye = Matrix.Translation((-1.5, 0.1, -4)) @ Matrix.Rotation(0.3, 4, "X")
    layer = draw(object, Viewpoint(eye, projection, (0, 0, width, height)), [[20, 20], [90, 90]])
    show_view(bpy.context, object, layer.viewpoint)
    found = agrees(object, layer)
    _, region, _ = viewport(bpy.context)
    corners = found.to_region([[0, 0], [width, height]])
    assert corners.min() > -0.5 and (corners[1] < np.array([region.width, region.height]) + 0.5).all()
    filled = (corners[1] - corners[0]) / [region.width, region.height]
    assert filled.max() == pytest.approx(1, abs=1e-3), "as large as it fits"
    assert found.scale[0] == pytest.approx(found.scale[1])


@pytest.mark.parametrize("kind", ["PERSP", "ORTHO"])
@pytest.mark.parametrize("shift", [(0, 0), (0.1, -0.2)])
def test_layers_drawn_through_a_camera(stage, kind, shift):
    object, _ = stage
    scene = bpy.context.scene
    camera = bpy.data.objects.new("Camera", bpy.data.cameras.new("Camera"))
    scene.collection.objects.link(camera)
    camera.data.type, camera.data.lens, camera.data.ortho_scale = kind, 40, 6
    camera.data.shift_x, camera.data.shift_y = shift
    scene.render.resolution_x, scene.render.resolution_y = 640, 480
    camera.matrix_world = (
        object.matrix_world @ Matrix.Translation((1.5, 0.2, 0)) @ Matrix.Rotation(0.4, 4, "X")
        @ Matrix.Translation((0, 0, 5))
    )  # fmt: skip
    bpy.context.view_layer.update()
    layer = draw(object, "Camera")
    space, _, view = viewport(bpy.context)
    leave(view, space)
    show_view(bpy.context, object, layer.viewpoint)
    covered(object, layer, agrees(object, layer))


def test_a_viewport_leaves_its_camera_and_its_locks_and_can_go_back(stage):
    object, armature = stage
    scene = bpy.context.scene
    camera = bpy.data.objects.new("Camera", bpy.data.cameras.new("Camera"))
    scene.collection.objects.link(camera)
    scene.camera = camera
    camera.matrix_world = Matrix.Translation((0, 0, 9))
    space, region, view = viewport(bpy.context)
    turn_view(object, view, space, False)
    layer = draw(object, region_viewpoint(object, region, view))
    leave(view, space)
    space.lock_object, space.lock_bone, space.lock_camera = armature, "hip", True
    view.view_perspective = "CAMERA"
    view.update()
    before, placed, matrix = view_state(space, view), camera.matrix_world.copy(), np.array(view.view_matrix)
    show_view(bpy.context, object, layer.viewpoint)
    agrees(object, layer)
    assert view.view_perspective == "PERSP" and space.lock_object is None
    assert camera.matrix_world == placed, "the camera stays"
    restore_view(space, view, before)
    assert view.view_perspective == "CAMERA" and (space.lock_object, space.lock_bone) == (armature, "hip")
    assert space.lens == 35 and space.lock_camera and camera.matrix_world == placed
    np.testing.assert_allclose(np.array(view.view_matrix), matrix, atol=1e-5)


@pytest.mark.parametrize("flat", [False, True])
def test_a_viewport_can_go_back(stage, flat):
    object, _ = stage
    space, region, view = viewport(bpy.context)
    layer = draw(object, region_viewpoint(object, region, view))
    turn_view(object, view, space, flat)
    space.lock_cursor = True
    view.update()
    before, matrices = view_state(space, view), [np.array(view.view_matrix), np.array(view.window_matrix)]
    show_view(bpy.context, object, layer.viewpoint)
    assert not space.lock_cursor
    restore_view(space, view, before)
    assert space.lock_cursor and view_state(space, view) == before
    for now, then in zip((view.view_matrix, view.window_matrix), matrices, strict=True):
        np.testing.assert_allclose(np.array(now), then, atol=1e-4)


def test_without_a_viewport_one_sentence(stage):
    object, _ = stage
    space, region, view = viewport(bpy.context)
    draw(object, region_viewpoint(object, region, view))
    for area in bpy.context.screen.areas:
        if area.type == "VIEW_3D":
            area.type = "TEXT_EDITOR"
    with pytest.raises(RuntimeError, match="no 3D viewport to show the layer's view in; open one"):
        ops.view_selection_layer()
    with pytest.raises(RuntimeError, match="in a 3D viewport, or give its points"):
        ops.redraw_selection_layer()


def test_an_object_scaled_to_nothing_is_told(stage):
    object, armature = stage
    space, region, view = viewport(bpy.context)
    draw(object, region_viewpoint(object, region, view))
    before = view_state(space, view)
    armature.scale = (0, 1, 1)
    bpy.context.view_layer.update()
    with pytest.raises(RuntimeError, match="'bar' is scaled to nothing; give it a scale other than 0"):
        ops.view_selection_layer()
    assert view_state(space, view) == before


def test_a_view_of_no_camera_is_told(stage):
    """Scripts can give any matrices."""
    object, _ = stage
    flat = Viewpoint(np.diag([1, 1, 0, 1]), np.diag([0.2, 0.2, -0.1, 1]), (0, 0, 400, 300))
    empty = Viewpoint(np.eye(4), np.diag([0, 0.2, -0.1, 1]), (0, 0, 400, 300))
    for seen in (flat, empty):
        draw(object, seen)
        with pytest.raises(RuntimeError, match="view is one that no viewport can show"):
            ops.view_selection_layer()


def test_without_a_window_one_sentence_too():
    """In a process of its own, where nothing has started the graphics device."""
    script = (
        "import bpy\n"
        "from gaussianimate.core.errors import SelectionError\n"
        "from gaussianimate.gaussianimate_addon.weights.reopen import find_viewport\n"
        "try:\n    find_viewport(bpy.context)\nexcept SelectionError as error:\n    print('said:', error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "said: The layer's view is shown in a window" in done.stdout, done.stderr


def test_a_mirrored_layer_has_a_view_to_go_to(stage):
    object, _ = stage
    space, region, view = viewport(bpy.context)
    turn_view(object, view, space, False)
    draw(object, region_viewpoint(object, region, view))
    ops.mirror_layers(whole_bone=False)
    layer = read_layers(object).layers[-1]
    assert layer.bone == "arm.R"
    show_view(bpy.context, object, layer.viewpoint)
    agrees(object, layer)


# Redraw, as scripts call it


def test_a_new_shape_keeps_everything_else(stage):
    object, _ = stage
    space, region, view = viewport(bpy.context)
    turn_view(object, view, space, False)
    seen = region_viewpoint(object, region, view)
    at = pixels(object, view, region).mean(axis=0)
    draw(object, seen, name="below")
    layer = draw(object, seen, (at + [[-90, -60], [120, 70]]).tolist(), operation="MIX", name="mine",
                 strength=0.7, through=False)  # fmt: skip
    draw(object, seen, bone="hip")
    layer_list(object).active = 1
    points = (at + [[-30, -40], [80, 50]]).tolist()
    assert ops.redraw_selection_layer(points=json.dumps(points)) == {"FINISHED"}
    stack = read_layers(object)
    made = stack.layers[1]
    assert [each.name for each in stack.layers] == ["below", "mine", ""]
    assert made.shape == make_shape("RECTANGLE", points) and made.front not in (None, layer.front)
    kept = ("bone", "viewpoint", "feather", "strength", "operation", "name", "muted")
    assert all(getattr(made, name) == getattr(layer, name) for name in kept)
    after = dict(points=json.dumps(points), smoothness=12.0, strength=0.25)
    ops.redraw_selection_layer(**after)
    made = read_layers(object).layers[1]
    assert (made.feather.width, made.strength) == (12, 0.25)


def test_redrawn_shapes_are_of_the_layers_kind(stage):
    object, _ = stage
    space, region, view = viewport(bpy.context)
    seen = region_viewpoint(object, region, view)
    draw(object, seen, [[0, 0], [90, 0], [90, 90]], "LASSO")
    outer, hole = [[0, 0], [90, 0], [90, 90], [0, 90]], [[30, 30], [60, 30], [60, 60], [30, 60]]
    ops.redraw_selection_layer(points=json.dumps([outer, hole]))
    assert len(read_layers(object).layers[0].shape.outlines) == 2
    before = read_layers(object)
    for points, message in (("[[1, 2]]", "at least 3 points"), ("x", "are JSON")):
        with pytest.raises(RuntimeError, match=message):
            ops.redraw_selection_layer(points=points)
    assert read_layers(object) == before
    write_layers(object, before.without(0))
    layer_list(object).active = -1
    with pytest.raises(RuntimeError, match="Choose a layer"):
        ops.redraw_selection_layer()
