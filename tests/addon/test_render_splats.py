"""Rendered files show what the reference rasteriser draws: the scene's camera, splats, frames and meshes."""

from dataclasses import replace
from types import SimpleNamespace

import bpy
import numpy as np
import pytest
from exr_reader import read_exr
from mathutils import Matrix
from pictures import HEIGHT, MATRICES, WIDTH, assert_same_picture, orthographic, perspective
from rigs import make_capture, make_cloud, make_rig, make_skin_of
from scenes import build, pose

from gaussianimate.core.deform.deform import deform_cloud
from gaussianimate.core.render.camera import Camera
from gaussianimate.core.render.reference import psnr, rasterise
from gaussianimate.gaussianimate_addon.bake import posed_cloud
from gaussianimate.gaussianimate_addon.capture_object import create_capture_object
from gaussianimate.gaussianimate_addon.drawer import render as rendering
from gaussianimate.gaussianimate_addon.drawer.display import set_display
from gaussianimate.gaussianimate_addon.drawer.render import SceneRenderer
from gaussianimate.gaussianimate_addon.job import Job, running
from gaussianimate.gaussianimate_addon.point_cloud import cloud_to_point_cloud
from gaussianimate.gaussianimate_addon.rig_object import apply_rig
from gaussianimate.operators.render_files import frame_files
from gaussianimate.operators.render_splats import GAUSSIANIMATE_OT_render_splats

pytestmark = pytest.mark.usefixtures("device")


@pytest.fixture
def view(empty_scene):
    """A scene whose camera is that of `pictures.perspective`."""
    scene, camera = empty_scene, bpy.data.objects.new("camera", bpy.data.cameras.new("camera"))
    scene.collection.objects.link(camera)
    scene.camera, data = camera, camera.data
    data.sensor_fit, data.angle_y = "VERTICAL", 0.7
    data.clip_start, data.clip_end = 0.05, 100
    place(camera, perspective())
    scene.render.resolution_x, scene.render.resolution_y = 2 * WIDTH, 2 * HEIGHT
    scene.render.resolution_percentage = 50
    scene.view_settings.view_transform, scene.render.dither_intensity = "Standard", 0
    scene.frame_start, scene.frame_end = 1, 3
    return scene


def place(object, camera):
    object.matrix_world = Matrix(np.linalg.inv(camera.view).tolist())


def add_splats(scene, cloud=None, name="splats", matrix=None):
    cloud = cloud or big(make_cloud(120))
    object = bpy.data.objects.new(name, cloud_to_point_cloud(cloud, name))
    scene.collection.objects.link(object)
    if matrix is not None:
        object.matrix_world = Matrix(np.asarray(matrix).tolist())
    return object


def big(cloud):
    return replace(cloud, scales=2 * cloud.scales)


def render(path, **settings):
    settings = {"frame_start": 1, "frame_end": 1, "color_depth": "32", **settings}
    assert bpy.ops.gaussianimate.render_splats(filepath=str(path), **settings) == {"FINISHED"}
    assert running() is None


def read(path):
    """Return colours (H, W, 4) and depths of an OpenEXR file."""
    channels, _ = read_exr(path)
    return np.stack([channels[name] for name in "RGBA"], axis=-1), channels["Depth.Z"]


def drawn(folder, **settings):
    render(folder / "drawn.exr", **settings)
    return read(folder / "drawn.exr")[0]


def reference(*items, camera=None):
    return rasterise(list(items), camera or perspective(), linear=True)


def test_colours_and_depths_are_those_of_the_reference(view, tmp_path):
    cloud = big(make_cloud(150, degree=3))
    add_splats(view, cloud, matrix=MATRICES["mirrored"])
    render(tmp_path / "a.exr")
    rgba, depth = read(tmp_path / "a.exr")
    expected = reference((cloud, MATRICES["mirrored"]))
    assert_same_picture(rgba, expected.rgba, 80)
    seen = rgba[..., 3] > 0
    assert (depth[~seen] == np.float32(1e10)).all() and not seen.all()
    both = seen & np.isfinite(expected.depth)
    assert both.sum() > 0.99 * seen.sum()
    np.testing.assert_allclose(depth[both], expected.depth[both], rtol=1e-4)


@pytest.mark.parametrize("bits", ("8", "16"))
def test_png_is_the_reference_within_its_steps(view, tmp_path, bits):
    cloud = big(make_cloud(150))
    add_splats(view, cloud)
    render(tmp_path / "a.png", color_depth=bits)
    image = bpy.data.images.load(str(tmp_path / "a.png"))
    shown = np.array(image.pixels[:]).reshape(HEIGHT, WIDTH, 4)
    if bits == "8":
        straight, alpha = shown[..., :3], shown[..., 3:]
        linear = np.where(straight <= 0.04045, straight / 12.92, ((straight + 0.055) / 1.055) ** 2.4)
        shown = np.dstack([linear * alpha, alpha])
    expected = reference((cloud, None)).rgba
    expected[..., :3] = np.minimum(expected[..., :3], expected[..., 3:])  # PNG has no straight colour above 1
    assert_same_picture(shown, expected, 50 if bits == "8" else 75)


def test_objects_interleave(view, tmp_path):
    one, other = big(make_cloud(120, seed=1)), big(make_cloud(120, degree=2, seed=2))
    add_splats(view, one, "one")
    add_splats(view, other, "other", MATRICES["turned"])
    expected = reference((one, None), (other, MATRICES["turned"])).rgba
    assert_same_picture(drawn(tmp_path), expected, 80)
    front, back = reference((one, None)).rgba, reference((other, MATRICES["turned"])).rgba
    for first, second in ((front, back), (back, front)):
        assert psnr(first + second * (1 - first[..., 3:]), expected) < 50, "the objects are apart"


@pytest.mark.parametrize("display", ("DRAWER", "NATIVE"))
def test_posed_splats_of_every_frame(view, tmp_path, display):
    object, armature, _ = build(view, big(make_cloud(150)))
    set_display(object, display)
    for frame in (1, 3):
        pose(armature, frame)
        for bone in armature.pose.bones:
            bone.keyframe_insert("location", frame=frame)
            bone.keyframe_insert("rotation_quaternion", frame=frame)
    view.frame_set(2, subframe=0.25)
    render(tmp_path / "a.exr", frame_end=3)
    assert (view.frame_current, view.frame_subframe) == (2, 0.25)
    pictures = []
    for frame in (1, 2, 3):
        view.frame_set(frame)
        cloud = posed_cloud(bpy.context.evaluated_depsgraph_get(), object, "OBJECT")
        assert len(cloud) == 150
        pictures.append(read(tmp_path / f"a_000{frame}.exr")[0])
        expected = reference((cloud, np.array(object.matrix_world, np.float64))).rgba
        assert_same_picture(pictures[-1], expected, 80)
    assert psnr(pictures[0], pictures[2]) < 30, "nothing moved"


@pytest.mark.parametrize("state", ("captured", "rigged", "hidden"))
def test_captures_play(view, tmp_path, state):
    cloud = big(make_cloud(120))
    rig = make_rig(cloud, frames=4)
    capture = make_capture(cloud, rig)
    object = create_capture_object(bpy.context, capture, capture.load_cloud(0), "z")
    if state == "rigged":
        apply_rig(bpy.context, object, rig, make_skin_of(rig))
    if state == "hidden":
        view.frame_set(1)
        object.hide_set(True)
    view.frame_set(3)
    matrix = np.array(object.matrix_world, np.float64)
    render(tmp_path / "a.exr", frame_end=3)
    pictures = [read(tmp_path / f"a_000{frame}.exr")[0] for frame in (1, 2, 3)]
    for picture, transforms in zip(pictures, rig.bone_transforms, strict=False):
        expected = deform_cloud(cloud, make_skin_of(rig), transforms)
        assert_same_picture(picture, reference((expected, matrix)).rgba, 60)
    assert psnr(pictures[0], pictures[2]) < 30, "nothing moved"
    assert object.hide_get() == (state == "hidden")


def lens(camera, **settings):
    for name, value in settings.items():
        setattr(camera.data, name, value)


def test_orthographic_camera(view, tmp_path):
    cloud = big(make_cloud(120))
    add_splats(view, cloud)
    lens(view.camera, type="ORTHO", ortho_scale=1.3)
    assert_same_picture(drawn(tmp_path), reference((cloud, None), camera=orthographic()).rgba, 75)


def test_shifted_lens_and_scaled_camera(view, tmp_path):
    cloud = big(make_cloud(120))
    add_splats(view, cloud)
    # Blender's shift is in units of the sensor that fits: half the picture's height moves clip space by 1.
    lens(view.camera, shift_x=0.2, shift_y=-0.15)
    view.camera.scale = (3, 2, 0.5)
    camera = perspective()
    projection = camera.projection.copy()
    projection[:2, 2] = 2 * 0.2 * HEIGHT / WIDTH, 2 * -0.15
    camera = Camera(camera.view, projection, WIDTH, HEIGHT)
    assert_same_picture(drawn(tmp_path), reference((cloud, None), camera=camera).rgba, 75)


def test_oblong_pixels_and_given_size(view, tmp_path):
    cloud = big(make_cloud(120))
    add_splats(view, cloud)
    view.render.pixel_aspect_x = 2
    camera = perspective()
    projection = camera.projection.copy()
    projection[0, 0] = projection[1, 1] * 40 / (80 * 2)
    camera = Camera(camera.view, projection, 80, 40)
    picture = drawn(tmp_path, width=80, height=40)
    assert_same_picture(picture, reference((cloud, None), camera=camera).rgba, 75)
    assert np.frombuffer(read_exr(tmp_path / "drawn.exr")[1]["pixelAspectRatio"], "<f4") == 2


def test_cameras_of_markers(view, tmp_path):
    cloud = big(make_cloud(120))
    add_splats(view, cloud)
    first, second = view.camera, view.camera.copy()
    second.data = first.data
    view.collection.objects.link(second)
    moved = perspective(eye=(1.1, -1.6, 0.2))
    place(second, moved)
    for frame, camera in ((1, first), (2, second)):
        view.timeline_markers.new("cut", frame=frame).camera = camera
    render(tmp_path / "a.exr", frame_end=2)
    assert_same_picture(read(tmp_path / "a_0001.exr")[0], reference((cloud, None)).rgba, 75)
    assert_same_picture(read(tmp_path / "a_0002.exr")[0], reference((cloud, None), camera=moved).rgba, 75)
    assert view.camera == first


def exclude(scene, object):
    holder = bpy.data.collections.new("holder")
    scene.collection.children.link(holder)
    holder.objects.link(object)
    scene.collection.objects.unlink(object)
    return holder


def test_what_does_not_render_is_left_out(view, tmp_path):
    shown, others = big(make_cloud(80, seed=1)), [big(make_cloud(80, seed=s)) for s in (2, 3, 4)]
    add_splats(view, shown)
    objects = [add_splats(view, cloud, f"other {i}") for i, cloud in enumerate(others)]
    objects[0].hide_render = True
    exclude(view, objects[1]).hide_render = True
    name = exclude(view, objects[2]).name
    bpy.context.view_layer.layer_collection.children[name].exclude = True
    assert_same_picture(drawn(tmp_path), reference((shown, None)).rgba, 80)


def test_hiding_in_viewports_and_display_do_not_matter(view, tmp_path):
    clouds = [big(make_cloud(80, seed=s)) for s in range(3)]
    eye, disabled, bounds = [add_splats(view, cloud, f"{i}") for i, cloud in enumerate(clouds)]
    eye.hide_set(True)
    disabled.hide_viewport = True
    bounds.display_type = "BOUNDS"
    assert_same_picture(drawn(tmp_path), reference(*((cloud, None) for cloud in clouds)).rgba, 80)
    assert eye.hide_get() and disabled.hide_viewport and bounds.display_type == "BOUNDS"


def test_splats_no_viewport_shows_are_named(view, tmp_path, capfd):
    add_splats(view)
    lost = add_splats(view, name="lost")
    exclude(view, lost).hide_viewport = True
    drawn(tmp_path)
    assert "no collection shows them in viewports: 'lost'" in capfd.readouterr().out


def test_visibility_is_that_of_each_frame(view, tmp_path):
    cloud = big(make_cloud(80))
    object = add_splats(view, cloud)
    for frame in (1, 2):
        object.hide_render = frame == 1
        object.keyframe_insert("hide_render", frame=frame)
    render(tmp_path / "a.exr", frame_end=2)
    assert not read(tmp_path / "a_0001.exr")[0].any()
    assert_same_picture(read(tmp_path / "a_0002.exr")[0], reference((cloud, None)).rgba, 80)


@pytest.mark.parametrize("state", ("exclude", "hide_render"))
def test_instances_of_collections(view, tmp_path, state):
    cloud = big(make_cloud(80))
    object = add_splats(view, cloud)
    holder = exclude(view, object)
    if state == "exclude":
        bpy.context.view_layer.layer_collection.children[holder.name].exclude = True
    else:
        holder.hide_render = True
    places = [MATRICES["turned"], MATRICES["stretched"]]
    for matrix in places:
        empty = bpy.data.objects.new("instance", None)
        empty.instance_type, empty.instance_collection = "COLLECTION", holder
        empty.matrix_world = Matrix(matrix.tolist())
        view.collection.objects.link(empty)
    expected = reference(*((cloud, matrix) for matrix in places)).rgba
    assert_same_picture(drawn(tmp_path), expected, 80)


def add_wall(scene, depth=1.2, name="wall"):
    """A wall over the left half of the picture, so many metres in front of the camera."""
    corners = [(-9, -9), (0, -9), (0, 9), (-9, 9)]
    mesh = bpy.data.meshes.new(name)
    mesh.from_pydata([(x, y, -depth) for x, y in corners], [], [(0, 1, 2, 3)])
    wall = bpy.data.objects.new(name, mesh)
    wall.matrix_world = scene.camera.matrix_world
    scene.collection.objects.link(wall)
    return wall


def test_meshes_hide_splats_behind_them(view, tmp_path):
    cloud = big(make_cloud(150))
    add_splats(view, cloud)
    bpy.context.view_layer.update()
    whole = drawn(tmp_path)
    wall = add_wall(view, 0.5)
    hidden = drawn(tmp_path)
    half = WIDTH // 2
    assert whole[:, :half, 3].max() > 0.5 and not hidden[:, :half].any()
    np.testing.assert_array_equal(hidden[:, half:], whole[:, half:])
    np.testing.assert_array_equal(drawn(tmp_path, behind_meshes=False), whole)
    # Among the splats it hides those behind and no others.
    for vertex in wall.data.vertices:
        vertex.co *= 4
    camera = perspective()
    depths = -(cloud.positions @ camera.view[2, :3] + camera.view[2, 3])
    assert 20 < (depths < 2).sum() < 130
    front = reference((cloud.take(depths < 2), None)).rgba
    among = drawn(tmp_path)
    assert_same_picture(among[:, :half], front[:, :half], 60)
    np.testing.assert_array_equal(among[:, half:], whole[:, half:])
    wall.hide_render = True
    np.testing.assert_array_equal(drawn(tmp_path), whole)
    wall.hide_render, wall.visible_camera = False, False
    np.testing.assert_array_equal(drawn(tmp_path), whole)


def test_curves_and_instances_hide_splats(view, tmp_path):
    add_splats(view)
    bpy.context.view_layer.update()
    whole = drawn(tmp_path)
    pole = bpy.data.objects.new("pole", bpy.data.curves.new("pole", "CURVE"))
    pole.data.dimensions, pole.data.bevel_depth = "3D", 0.1
    points = pole.data.splines.new("POLY").points
    points.add(1)
    points[0].co, points[1].co = (-9, 0, -0.5, 1), (9, 0, -0.5, 1)
    pole.matrix_world = view.camera.matrix_world
    view.collection.objects.link(pole)
    middle = slice(HEIGHT // 2 - 5, HEIGHT // 2 + 5)
    behind = drawn(tmp_path)
    assert whole[middle, :, 3].max() > 0.5 and not behind[middle].any()
    np.testing.assert_array_equal(behind[:10], whole[:10])
    bpy.data.objects.remove(pole)
    wall = add_wall(view, 0.5)
    holder = exclude(view, wall)
    bpy.context.view_layer.layer_collection.children[holder.name].exclude = True
    np.testing.assert_array_equal(drawn(tmp_path), whole)
    empty = bpy.data.objects.new("instance", None)
    empty.instance_type, empty.instance_collection = "COLLECTION", holder
    view.collection.objects.link(empty)
    assert not drawn(tmp_path)[:, : WIDTH // 2].any()


def test_scene_range_and_numbering(view, tmp_path):
    add_splats(view)
    assert bpy.ops.gaussianimate.render_splats(filepath=str(tmp_path) + "/", width=8, height=8) == {
        "FINISHED"
    }
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [f"Scene_splats_000{frame}.png" for frame in (1, 2, 3)]


def refused(path, message, **settings):
    with pytest.raises(RuntimeError, match=message):
        render(path, **settings)
    assert running() is None
    assert not list(path.parent.glob("*.*")), "a file was left behind"


def test_what_is_missing_is_said(view, tmp_path):
    path = tmp_path / "a.png"
    refused(path, "no Gaussian splats in this file")
    add_splats(view)
    refused(path, "more than this graphics device can draw", width=10**6)
    with pytest.raises(RuntimeError, match="save it first"):
        render("//a.png")
    lens(view.camera, type="PANO")
    refused(path, "'camera' is a panoramic camera")
    lens(view.camera, type="PERSP")
    view.camera = None
    refused(path, "'Scene' has no camera")


def test_empty_pictures_are_told_of(view, tmp_path, capfd):
    add_splats(view).hide_render = True
    assert not drawn(tmp_path).any()
    assert "The pictures are empty: 'Scene' renders no Gaussian splats" in capfd.readouterr().out


def test_no_graphics_driver_is_said(view, tmp_path, monkeypatch):
    add_splats(view)

    def no_driver():
        raise SystemError("no supported GPU backend")

    monkeypatch.setattr(rendering.gpu, "init", no_driver)
    refused(tmp_path / "a.png", "Blender finds no driver for it .no supported GPU backend.")


def test_a_picture_the_device_cannot_hold_is_said(view, tmp_path, monkeypatch):
    add_splats(view)
    monkeypatch.setattr(rendering.gpu.capabilities, "max_texture_size_get", lambda: 10**6)
    refused(tmp_path / "a.png", "does not hold a picture of 200000 x 200000", width=200_000, height=200_000)


def test_an_armature_in_edit_mode_is_refused(view, tmp_path):
    _, armature, _ = build(view, big(make_cloud(50)))
    bpy.context.view_layer.objects.active = armature
    bpy.ops.object.mode_set(mode="EDIT")
    refused(tmp_path / "new" / "deep" / "a.png", "'rig' is in Edit Mode")
    assert not list(tmp_path.iterdir()), "no folder without a picture"
    bpy.ops.object.mode_set(mode="OBJECT")
    render(tmp_path / "new" / "deep" / "a.png")
    assert (tmp_path / "new" / "deep" / "a.png").exists()


def test_a_failing_frame_leaves_whole_files_and_the_scene(view, tmp_path):
    add_splats(view)
    view.frame_set(9)
    (tmp_path / "a_0002.exr").mkdir()
    with pytest.raises(RuntimeError, match=r"a_0002.exr: the file cannot be written"):
        render(tmp_path / "a.exr", frame_end=3)
    assert view.frame_current == 9 and running() is None
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a_0001.exr", "a_0002.exr"]
    read(tmp_path / "a_0001.exr")


def test_cancelling_leaves_whole_files_and_the_scene(view, tmp_path):
    splats = add_splats(view)
    splats.hide_set(True)
    view.frame_set(9)
    files = frame_files(str(tmp_path / "a.exr"), "", "PNG", 1, 3)
    operator = SimpleNamespace(color_depth="16")
    renderer = SceneRenderer(WIDTH, HEIGHT, with_depth=True)
    steps = GAUSSIANIMATE_OT_render_splats._render(operator, bpy.context, renderer, files)
    job = Job("Render Splats", steps, GAUSSIANIMATE_OT_render_splats.work)
    while not files[1].exists():
        job.advance(0.0001)
    assert job.uses_scene and view.frame_current in (1, 2) and not splats.hide_get()
    job.cancel()
    assert view.frame_current == 9 and splats.hide_get()
    assert list(tmp_path.iterdir()) == [files[1]]
    read(files[1])


def test_settings_of_the_scene_stay(view, tmp_path):
    add_splats(view)
    settings = view.render.image_settings
    before = (settings.file_format, settings.color_mode, settings.color_depth, len(bpy.data.images))
    render(tmp_path / "a.png", color_depth="16")
    assert before == (settings.file_format, settings.color_mode, settings.color_depth, len(bpy.data.images))
