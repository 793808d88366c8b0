"""Fixtures of the Blender-side tests: an empty scene without any add-on, and what the drawer reads of one."""

import bpy
import pytest

FRAMES = 8  # of the sequence


@pytest.fixture
def scene():
    """An empty file at 24 frames a second; nothing of ours is registered."""
    bpy.ops.wm.read_homefile(app_template="", use_empty=True)
    return bpy.context.scene


@pytest.fixture
def drawn(empty_scene, device, monkeypatch):
    """Return a function that updates what is drawn and says what it read and built for that."""
    from drawn_scenes import DRAWER

    from gaussianimate.gaussianimate_addon.drawer import scene
    from gaussianimate.gaussianimate_addon.drawer.display import drawn_objects

    log = []

    def record(name):
        function = getattr(scene, name)
        monkeypatch.setattr(scene, name, lambda *a: (log.append(name), function(*a))[1])

    record("read_source")
    record("build_atlas")
    DRAWER.reset()

    def done():
        bpy.context.view_layer.update()
        DRAWER.splats.update(drawn_objects, bpy.context.view_layer.depsgraph, "exact")
        names = [name.partition("_")[0] for name in log]
        log.clear()
        return names

    yield done
    DRAWER.reset()


@pytest.fixture(scope="session")
def sequence(tmp_path_factory):
    """A folder of PLY frames of a bending bar whose last numbers are not padded."""
    from rigs import make_capture, make_cloud, make_rig

    from gaussianimate.core.formats import write_cloud

    cloud = make_cloud(count=500, degree=1)
    capture = make_capture(cloud, make_rig(cloud, frames=FRAMES))
    folder = tmp_path_factory.mktemp("bar")
    for frame in range(FRAMES):
        write_cloud(capture.load_cloud(frame), folder / f"bar_{frame + 5}.ply")
    return folder


@pytest.fixture
def imported(empty_scene, sequence):
    bpy.ops.gaussianimate.import_capture(filepath=str(sequence), up="Z")
    return bpy.context.active_object


@pytest.fixture(scope="session")
def rigged_file(addon, sequence, tmp_path_factory):
    """A file with a rigged capture, built once by the operators."""
    bpy.ops.wm.read_homefile(app_template="", use_empty=True)
    bpy.ops.gaussianimate.import_capture(filepath=str(sequence), up="Z")
    assert bpy.ops.gaussianimate.build_rig(max_bones=4) == {"FINISHED"}
    path = tmp_path_factory.mktemp("rigged") / "bar.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    return path


@pytest.fixture
def rigged(rigged_file):
    """The splats and the armature of the rigged file, the armature active."""
    bpy.ops.wm.open_mainfile(filepath=str(rigged_file))
    armature = bpy.context.active_object
    return next(child for child in armature.children if child.type == "POINTCLOUD"), armature
