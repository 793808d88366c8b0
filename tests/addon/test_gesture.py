"""Gestures: what mouse and keys make of the operator, the mask on the splats, the tools, the settings."""

import json
from dataclasses import replace
from types import SimpleNamespace

import bpy
import numpy as np
import pytest
from drawn_weights import add_armature, add_splats, select
from mathutils import Quaternion
from pictures import draw, perspective, rigged

from gaussianimate.core.errors import SelectionError
from gaussianimate.core.selection.shapes import Ellipse, Lasso, Rectangle, Stroke
from gaussianimate.gaussianimate_addon.drawer.atlas import Source, build_atlas
from gaussianimate.gaussianimate_addon.drawer.draw import Item
from gaussianimate.gaussianimate_addon.drawer.mask import Mask
from gaussianimate.gaussianimate_addon.drawer.offscreen import prepare
from gaussianimate.gaussianimate_addon.weights.gesture_settings import gesture_settings
from gaussianimate.gaussianimate_addon.weights.gesture_view import outline_of
from gaussianimate.gaussianimate_addon.weights.gestures import check_rest, make_shape
from gaussianimate.operators.selection_gesture import DrawsSelection
from gaussianimate.panels import selection_tools

ops = bpy.ops.gaussianimate


def event(kind="MOUSEMOVE", at=(0, 0), value="NOTHING", **keys):
    given = {"shift": False, "ctrl": False, "pressure": 1.0, "is_tablet": False} | keys
    return SimpleNamespace(type=kind, value=value, mouse_region_x=at[0], mouse_region_y=at[1], **given)


def gesture(shape, **values):
    made = DrawsSelection()
    given = {"smoothness": 40.0, "strength": 1.0, "radius": 20.0, "operation": "ADD"} | values
    made.__dict__.update(shape=shape, _path=[], _typed="", **given)
    return made


def test_two_corners_follow_the_mouse():
    drawn = gesture("RECTANGLE")
    for at in ((10, 20), (30, 21), (80, 90)):
        drawn._point(event(at=at))
    assert drawn._path == [[10, 20], [80, 90]] and drawn._is_drawn()
    drawn._point(event(at=(80, 20)))
    assert not drawn._is_drawn(), "no area"


def test_paths_skip_points_side_by_side_and_feel_pressure():
    drawn = gesture("STROKE")
    for x, pressure in ((0, 1.0), (1, 1.0), (10, 0.5), (20, 0.0)):
        drawn._point(event(at=(x, 5), pressure=pressure, is_tablet=True))
    assert drawn._path == [[0, 5, 20], [10, 5, 10], [20, 5, 1]]
    lasso = gesture("LASSO")
    for at in ((0, 0), (50, 0)):
        lasso._point(event(at=at))
    assert not lasso._is_drawn()
    lasso._point(event(at=(50, 50)))
    assert lasso._is_drawn()


def test_wheel_and_digits():
    drawn = gesture("LASSO")
    drawn._turn(1, False)
    assert drawn.smoothness == pytest.approx(46)
    for _ in range(60):
        drawn._turn(-1, False)
    assert drawn.smoothness == 0, "a hard edge can be reached"
    drawn._turn(1, False)
    assert drawn.smoothness > 0, "and left"
    drawn._turn(1, True)
    assert drawn.strength == 1
    drawn._turn(-1, True)
    assert drawn.strength == pytest.approx(0.95)
    for key, smoothness in (("ONE", 1), ("NUMPAD_2", 12), ("BACK_SPACE", 1), ("A", 1), ("FIVE", 15)):
        drawn._type(key)
        assert drawn.smoothness == smoothness
    assert "15 px" in drawn._hint() and "Esc" in drawn._hint()


def test_outlines_go_round_the_shapes():
    for shape in (
        Rectangle((100, 50), (40, 20), 0.4),
        Ellipse((100, 50), (40, 20), 0.4),
        Lasso((((0, 0), (90, 10), (40, 80)),)),
    ):
        line = outline_of(shape)
        np.testing.assert_allclose(line[0], line[-1], atol=1e-4)
        x, y = line.astype(float).T
        np.testing.assert_allclose(shape.distance(x, y, normals=False).value, 0, atol=1e-4)
    assert len(outline_of(Stroke(((0, 0), (5, 5)), (3, 3)))) == 2


def test_shapes_of_gestures():
    assert make_shape("RECTANGLE", [[0, 10], [40, 0]]) == Rectangle((20, 5), (20, 5))
    assert make_shape("STROKE", [[0, 0], [40, 0]], radius=7) == Stroke(((0, 0), (40, 0)), (7, 7))
    with pytest.raises(SelectionError, match="no shape STAR"):
        make_shape("STAR", [[0, 0]])


def test_posed_splats_are_not_drawn_on(empty_scene):
    object, armature = add_splats(empty_scene), add_armature(empty_scene)
    select(object)
    ops.bind(armature="hand made", method="EMPTY")
    check_rest(object)
    armature.pose.bones["hip"].rotation_mode = "QUATERNION"
    armature.pose.bones["hip"].rotation_quaternion = Quaternion((0, 0, 1), 0.5)
    bpy.context.view_layer.update()
    with pytest.raises(SelectionError, match="Rest Position"):
        check_rest(object)
    assert ops.toggle_rest() == {"FINISHED"} and armature.data.pose_position == "REST"
    check_rest(object)
    ops.toggle_rest()
    assert armature.data.pose_position == "POSE"


def test_the_mask_is_laid_over_the_colours(device):
    """Selected splats show heat, the others their colour dimmed; other objects stay as they are."""
    cloud, skin, poses = rigged(degree=1, influences=2)
    camera, n = perspective(), len(cloud)
    atlas = build_atlas([Source(cloud, skin)])
    items = [Item(0, np.eye(4), poses[0])]
    plain = draw(cloud, camera, np.eye(4), skin, poses[0])
    pictures = {}
    for name, values in (("all", np.ones(n)), ("none", np.zeros(n)), ("other", None)):
        mask = Mask(7, np.zeros(1, np.float32) if values is None else values.astype(np.float32))
        texture = mask.texture([SimpleNamespace(uid=7)], atlas)
        assert (texture is None) == (values is None)
        pictures[name] = _with_mask(atlas, items, camera, texture)
    np.testing.assert_array_equal(pictures["other"], plain)
    assert pictures["all"][..., 0].sum() > 1.3 * plain[..., 0].sum(), "red"
    assert pictures["all"][..., 2].sum() < 0.4 * plain[..., 2].sum(), "and no blue"
    np.testing.assert_allclose(pictures["none"][..., :3], 0.6 * plain[..., :3], atol=2e-3)
    for name in ("all", "none"):
        np.testing.assert_allclose(pictures[name][..., 3], plain[..., 3], atol=1e-5)


def _with_mask(atlas, items, camera, texture):
    from gaussianimate.gaussianimate_addon.drawer import offscreen

    shading = offscreen.PLAIN
    frame = replace(prepare(atlas, items, camera, shading), mask=texture)
    target = offscreen._target(camera)
    with target.bind():
        import gpu

        buffer = gpu.state.active_framebuffer_get()
        buffer.clear(color=(0, 0, 0, 0), depth=1)
        offscreen._draw_splats(atlas, frame, shading)
        return offscreen._read(buffer, camera)


def test_rows_of_the_mask_are_those_of_its_object():
    spans = [type("Span", (), {"__len__": lambda self, n=n: n, "first": f})() for n, f in ((3, 0), (2, 3))]
    atlas = SimpleNamespace(spans=spans)
    subjects = [SimpleNamespace(uid=1), SimpleNamespace(uid=2)]
    values = np.array([0.25, 0.5], np.float32)
    np.testing.assert_array_equal(Mask(2, values).rows(subjects, atlas), [-1, -1, -1, 0.25, 0.5])
    assert Mask(3, values).rows(subjects, atlas) is None
    assert Mask(1, values).rows(subjects, atlas) is None, "of another cloud than is drawn"


def test_tools_call_the_operator_with_what_it_has(addon):
    from bl_ui.space_toolsystem_toolbar import VIEW3D_PT_tools_active as toolbar

    properties = ops.add_selection_layer.get_rna_type().properties
    for mode in selection_tools.MODES:
        found = {item.idname: item for item in toolbar._tools_flatten(toolbar._tools[mode]) if item}
        for shape, label, _ in selection_tools.TOOLS:
            tool = found[f"gaussianimate.{shape.lower()}_{mode.lower()}"]
            assert tool.label == label
        for idname, _, options in selection_tools._keymap("LASSO"):
            assert idname == "gaussianimate.add_selection_layer"
            assert all(name in properties for name, _ in options["properties"])


def test_settings_are_kept_in_the_scene(empty_scene, tmp_path):
    settings = gesture_settings(bpy.context)
    settings.smoothness, settings.operation = 12.0, "MIX"
    path = str(tmp_path / "settings.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path)
    bpy.ops.wm.open_mainfile(filepath=path)
    settings = gesture_settings(bpy.context)
    assert (settings.smoothness, settings.operation) == (12, "MIX")
    assert json.dumps(settings.through) == "false"
