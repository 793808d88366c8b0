"""Gestures: what mouse and keys make of the operator, the mask on the splats, the tools, the settings."""

from dataclasses import replace
from types import SimpleNamespace

import bpy
import numpy as np
import pytest
from drawn_panels import Layout
from drawn_panels import draw as draw_panel
from drawn_weights import add_armature, add_splats, select
from mathutils import Quaternion
from pictures import draw, perspective, rigged

from gaussianimate.core.errors import SelectionError
from gaussianimate.core.selection.shapes import Ellipse, Lasso, Rectangle, Stroke
from gaussianimate.gaussianimate_addon.drawer.atlas import Source, build_atlas
from gaussianimate.gaussianimate_addon.drawer.display import set_display
from gaussianimate.gaussianimate_addon.drawer.draw import Item
from gaussianimate.gaussianimate_addon.drawer.mask import Mask
from gaussianimate.gaussianimate_addon.drawer.offscreen import prepare
from gaussianimate.gaussianimate_addon.properties import display_settings, object_notes
from gaussianimate.gaussianimate_addon.weights.gesture_display import borrow_display, return_display
from gaussianimate.gaussianimate_addon.weights.gesture_path import GesturePath, TypedNumber
from gaussianimate.gaussianimate_addon.weights.gesture_settings import gesture_settings
from gaussianimate.gaussianimate_addon.weights.gesture_view import outlines_of
from gaussianimate.gaussianimate_addon.weights.gestures import check_rest, make_shape
from gaussianimate.operators.selection_gesture import DrawsSelection
from gaussianimate.panels import selection_tools

ops = bpy.ops.gaussianimate


def event(kind="MOUSEMOVE", at=(0, 0), value="NOTHING", **keys):
    given = {"shift": False, "ctrl": False, "alt": False, "pressure": 1.0, "is_tablet": False} | keys
    return SimpleNamespace(type=kind, value=value, mouse_x=at[0], mouse_y=at[1], **given)


def path_of(shape, *points):
    path = GesturePath(shape)
    for point in points:
        path.add(*point)
    return path


def test_two_corners_follow_the_mouse():
    path = path_of("RECTANGLE", (10, 20), (30, 21), (80, 90))
    assert path.points(5) == [[[10, 20], [80, 90]]] and path.is_drawn()
    path.add(80, 20)
    assert not path.is_drawn(), "no area"
    assert path_of("ELLIPSE", (4, 5)).points(5) == [[[4, 5], [4, 5]]], "seen at once"


def test_paths_skip_points_side_by_side_and_feel_pressure():
    path = path_of("STROKE", (0, 5, 1.0), (1, 5, 1.0), (10, 5, 0.5), (20, 5, 0.0))
    assert path.points(20) == [[[0, 5, 20], [10, 5, 10], [20, 5, 1]]] and path.is_drawn()
    assert path.points(40)[0][1] == [10, 5, 20], "the radius can change while drawing"
    lasso = path_of("LASSO", (0, 0), (50, 0))
    assert not lasso.is_drawn()
    lasso.add(50, 50)
    assert lasso.is_drawn()
    assert not GesturePath("STROKE").is_drawn()


def stroke_of(*events, radius=20.0):
    """Return the stroke that events over a region at (100, 50) draw, by the operator's own path."""
    drawn = DrawsSelection()
    drawn.shape, drawn._path, drawn._box = "STROKE", GesturePath("STROKE"), (100, 50, 640, 480)
    drawn._press(events[0])
    for each in events[1:]:
        drawn._point(each)
    return make_shape("STROKE", drawn._path.points(radius)[0], radius)


def at(x, y=10, **keys):
    return event(at=(100 + x, 50 + y), **keys)


@pytest.mark.parametrize(
    ("pressures", "radii"),
    [
        ((1.0, 0.25, 0.5), (20, 5, 10)),
        ((0.0, 0.5, 1.0), (1, 10, 20)),  # just landed: as light as it gets
        ((0.0, 0.0, 0.0), (20, 20, 20)),  # of a tablet that measures none
    ],
)
def test_a_pens_pressure_is_the_radius(pressures, radii):
    points = ((0, 10), (40, 30), (80, 10))
    drawn = zip(points, pressures, strict=True)
    stroke = stroke_of(*(at(*point, pressure=pressure, is_tablet=True) for point, pressure in drawn))
    assert stroke.points == points and stroke.radii == pytest.approx(radii)


@pytest.mark.parametrize("pressure", [0.0, 0.3, 1.0])
def test_a_mouse_has_the_full_radius(pressure):
    """Whatever the system says of its pressure."""
    assert set(stroke_of(*(at(x, pressure=pressure) for x in (0, 40, 80))).radii) == {20}


def test_a_pen_that_presses_on_one_spot_counts_by_its_hardest():
    tap = stroke_of(*(at(x, pressure=p, is_tablet=True) for x, p in ((0, 0.02), (1, 0.8), (1, 0.6))))
    assert tap.points == ((0, 10),) and tap.radii == pytest.approx([16])


def test_a_lasso_of_several_outlines():
    path = path_of("LASSO", (0, 0), (90, 0), (90, 90))
    path.close()
    assert path.is_drawn() and not path.empty
    path.add(40, 20)
    path.add(60, 20)
    assert len(path.points(1)) == 1, "two points are no outline yet"
    path.add(60, 40)
    first, second = path.points(1)
    assert first == [[0, 0], [90, 0], [90, 90]] and second == [[40, 20], [60, 20], [60, 40]]
    path.close()
    path.add(1, 1)
    path.close()
    assert path.points(1) == [first, second], "a click is no outline"


def test_several_outlines_are_every_other_part():
    outer, hole = [[0, 0], [90, 0], [90, 90], [0, 90]], [[30, 30], [60, 30], [60, 60], [30, 60]]
    lasso = make_shape("LASSO", [outer, hole])
    assert len(lasso.outlines) == 2
    at = np.array([10.0, 45.0, 100.0])
    np.testing.assert_array_equal(lasso.distance(at, at, normals=False).value < 0, [True, False, False])
    assert make_shape("LASSO", [outer]) == make_shape("LASSO", outer)
    with pytest.raises(SelectionError, match="at least 3 points, not 2"):
        make_shape("LASSO", [outer, hole[:2]])
    with pytest.raises(SelectionError, match="rows of two numbers"):
        make_shape("RECTANGLE", [outer, hole])


def test_typed_numbers():
    numbers = SimpleNamespace(smoothness=40.0, strength=0.5, radius=20.0)
    typed = TypedNumber(("smoothness", "strength", "radius"))

    def type_all(*keys):
        return [typed.press(key, numbers) for key in keys]

    for key, smoothness, text in (
        ("ONE", 1, "1"), ("NUMPAD_2", 12, "12"), ("BACK_SPACE", 1, "1"), ("PERIOD", 1, "1."),
        ("FIVE", 1.5, "1.5"), ("NUMPAD_PERIOD", 1.5, "1.5"), ("MINUS", 1.5, "1.5"), ("A", 1.5, "1.5"),
    ):  # fmt: skip
        typed.press(key, numbers)
        assert (numbers.smoothness, typed.text) == (smoothness, text)
    assert type_all("MINUS", "A", "LEFT_SHIFT") == [False] * 3
    type_all("BACK_SPACE", "BACK_SPACE", "BACK_SPACE")
    assert numbers.smoothness == 40 and not typed.text, "nothing typed: as before"
    type_all("BACK_SPACE", "TAB", "PERIOD", "TWO", "FIVE")
    assert (numbers.smoothness, numbers.strength) == (40, 0.25)
    type_all("BACK_SPACE", "BACK_SPACE", "BACK_SPACE", "SEVEN")
    assert numbers.strength == 1, "at most"
    type_all("TAB", "ZERO")
    assert numbers.radius == 1, "at least"
    type_all("EIGHT", *["NINE"] * 20)
    assert numbers.radius == 1e5 and len(typed.text) == 7
    type_all("TAB", "COMMA", "PERIOD")
    assert typed.name == "smoothness" and numbers.smoothness == 0 and typed.text == "."


def test_the_wheel():
    """Smoothness, with Shift strength, with Alt the brush's radius; the status bar says the numbers."""
    drawn = DrawsSelection()
    drawn.shape, drawn.operation, drawn._pressed = "STROKE", "ADD", True
    drawn.smoothness, drawn.strength, drawn.radius = 40.0, 1.0, 20.0
    drawn._typed = TypedNumber(("smoothness", "strength", "radius"))
    drawn._turn(1, event())
    assert drawn.smoothness == pytest.approx(46)
    for _ in range(60):
        drawn._turn(-1, event())
    assert drawn.smoothness == 0, "a hard edge can be reached"
    drawn._turn(1, event())
    assert drawn.smoothness > 0, "and left"
    drawn._turn(1, event(shift=True))
    assert drawn.strength == 1, "at most"
    for _ in range(21):
        drawn._turn(-1, event(shift=True))
    assert drawn.strength == 0, "at least"
    drawn._turn(1, event(shift=True))
    assert drawn.strength == pytest.approx(0.05)
    for _ in range(60):
        drawn._turn(-1, event(alt=True))
    assert drawn.radius == 1, "a brush has a size"
    drawn._typed.press("SEVEN", drawn)
    hint = drawn._hint()
    assert all(text in hint for text in ("Add", "[7]", "Strength 0.05", "Radius 1 px", "Esc: Cancel"))
    drawn._turn(1, event())
    drawn._typed.press("TWO", drawn)
    assert drawn.smoothness == 2, "a number typed after the wheel begins anew"


def test_outlines_go_round_the_shapes():
    for shape in (
        Rectangle((100, 50), (40, 20), 0.4),
        Ellipse((100, 50), (40, 20), 0.4),
        Lasso((((0, 0), (90, 10), (40, 80)),)),
    ):
        (line,) = outlines_of(shape)
        np.testing.assert_allclose(line[0], line[-1], atol=1e-4)
        x, y = line.astype(float).T
        np.testing.assert_allclose(shape.distance(x, y, normals=False).value, 0, atol=1e-4)
    path, pen = outlines_of(Stroke(((0, 0), (5, 5)), (2, 3)))
    assert len(path) == 2
    np.testing.assert_allclose(np.hypot(*(pen - (5, 5)).T), 3, rtol=1e-5, err_msg="as large as the brush")
    ring = ((0, 0), (90, 10), (40, 80))
    assert [len(line) for line in outlines_of(Lasso((ring, ring)))] == [4, 4]


def test_shapes_of_gestures():
    assert make_shape("RECTANGLE", [[0, 10], [40, 0]]) == Rectangle((20, 5), (20, 5))
    assert make_shape("STROKE", [[0, 0], [40, 0]], radius=7) == Stroke(((0, 0), (40, 0)), (7, 7))
    pen = [[0, 0, 20], [40, 0, 10]]
    assert make_shape("STROKE", pen, radius=7).radii == (20, 10), "points that bring theirs keep them"
    assert make_shape("STROKE", pen, radius=30, drawn_radius=20).radii == (30, 15), "or follow the brush"
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


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("add_selection_layer", ("points", "view", "bone", "name", "drawn_radius")),
        ("redraw_selection_layer", ("points", "drawn_radius")),
        ("mirror_layers", ("to", "mirror")),
        ("bind", ("armature", "proxy")),
        ("estimate_gradients", ("layers",)),
    ],
)
def test_buttons_do_not_take_what_an_earlier_call_was_given(addon, name, given):
    """Blender gives a button the last call's values of all properties but these: a shape is to be drawn."""
    properties = getattr(ops, name).get_rna_type().properties
    assert all(properties[each].is_skip_save for each in given)


def test_settings_are_kept_in_the_scene(empty_scene, tmp_path):
    settings = gesture_settings(bpy.context)
    settings.smoothness, settings.operation = 12.0, "MIX"
    path = str(tmp_path / "settings.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path)
    bpy.ops.wm.open_mainfile(filepath=path)
    settings = gesture_settings(bpy.context)
    assert (settings.smoothness, settings.operation) == (12, "MIX")
    assert settings.through, "as a selection on the screen does, until it is switched off"


def test_the_display_comes_back_unless_more_than_colours_is_shown(empty_scene):
    object = add_splats(empty_scene)
    notes, shown = object_notes(object), display_settings(empty_scene)
    assert notes.display == "NATIVE" and borrow_display(object) and notes.display == "DRAWER"
    return_display(object.session_uid, empty_scene)
    assert notes.display == "NATIVE" and object.display_type == "TEXTURED"
    for name, value, plain in (("show", "WEIGHT", "COLOUR"), ("show", "STRETCH", "COLOUR"),
                               ("outlines", True, False), ("gradients", True, False),
                               ("unweighted", True, False)):  # fmt: skip
        setattr(shown, name, value)
        assert borrow_display(object)
        return_display(object.session_uid, empty_scene)
        assert notes.display == "DRAWER", name
        assert not borrow_display(object), "was chosen by then"
        setattr(shown, name, plain)
        set_display(object, "NATIVE")
    bpy.data.objects.remove(object)
    return_display(12345, empty_scene)  # gone meanwhile


@pytest.mark.parametrize("display", ["NATIVE", "DRAWER"])
def test_the_display_panel_stays_as_it_is_while_a_selection_is_drawn(empty_scene, monkeypatch, display):
    object, numbers = add_splats(empty_scene), []
    set_display(object, display)
    monkeypatch.setattr(Layout, "prop", lambda layout, data, name: numbers.append(name))

    def seen():
        numbers.clear()
        panel = draw_panel("display")
        return panel.texts, {name: button.depress for name, button in panel.buttons.items()}, list(numbers)

    before = seen()
    borrowed = borrow_display(object)
    assert object_notes(object).display == "DRAWER" and seen() == before
    if borrowed:
        return_display(object.session_uid, empty_scene)
    assert object_notes(object).display == display and seen() == before
    set_display(object, "DRAWER" if borrowed else "NATIVE")
    assert seen() != before, "chosen by the user"
