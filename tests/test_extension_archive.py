"""The archive users install: built, validated, installed, enabled and used in clean child processes."""

import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from rigs import make_capture, make_cloud, make_rig

ROOT = Path(__file__).parents[1]
ALLOWED = {
    "__init__.py",
    "__main__.py",
    "blender_manifest.toml",
    "LICENSE",
    "wheels",
    "core",
    "gaussianimate_addon",
    "gpu_shaders",
    "operators",
    "panels",
}
WHEELS = {"scipy", "trimesh", "gaussforge", "pillow"}

# Libraries of the developers' environment must not stand in for the wheels: while the child runs, these are
# found in the user folder, where Blender unpacks wheels, or not at all.
CHILD = """
import importlib, importlib.machinery, os, sys
import bpy, numpy, addon_utils
USER = os.environ["BLENDER_USER_RESOURCES"]
OPTIONAL = {"scipy", "trimesh", "gaussforge", "PIL", "plyfile", "networkx", "torch", "skimage"}

class OnlyFromWheels(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if path is None and name in OPTIONAL:
            path = [entry for entry in sys.path if entry.startswith(USER)]
        return super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(importlib.machinery.PathFinder)] = OnlyFromWheels
archive, capture, work = sys.argv[1:4]
NAME = "bl_ext.user_default.gaussianimate"
assert bpy.ops.extensions.package_install_files(
    filepath=archive, repo="user_default", enable_on_install=True) == {"FINISHED"}
assert NAME in bpy.context.preferences.addons
assert not OPTIONAL & set(sys.modules), "enabling imports what is optional"
assert not addon_utils._extensions_warnings_get().get(NAME), "policy violation"
ops = bpy.ops.gaussianimate
for object in list(bpy.data.objects):
    bpy.data.objects.remove(object)

def done(result):
    assert result == {"FINISHED"}, result

def refused(message, operator, **settings):
    try:
        operator(**settings)
    except RuntimeError as error:
        assert message in str(error), error
    else:
        raise AssertionError(f"not refused: {message}")
"""

END = """
assert "torch" not in sys.modules
assert "gaussianimate" not in sys.modules, "absolute self-import leaked"
bpy.ops.preferences.addon_disable(module=NAME)
assert not hasattr(bpy.types, "GAUSSIANIMATE_OT_import_capture")
assert not hasattr(bpy.types.Scene, "gaussianimate")
"""

WHOLE_JOB = """
done(ops.import_capture(filepath=capture))
done(ops.build_rig(max_bones=4))
assert sys.modules["scipy"].__file__.startswith(USER)
bpy.ops.wm.save_as_mainfile(filepath=f"{work}/rigged.blend")
done(ops.bake_ply(filepath=f"{work}/baked/", frame_start=1, frame_end=2))
assert len(os.listdir(f"{work}/baked")) == 2
"""

NUMPY_ONLY = """
done(ops.import_capture(filepath=capture))
refused("Building rigs needs scipy", ops.build_rig)
done(ops.bake_ply(filepath=f"{work}/import.ply"))
with open(f"{work}/x.spz", "wb") as stream:
    stream.write(b"\\x1f\\x8b" + bytes(40))
refused("gaussforge", ops.import_capture, filepath=f"{work}/x.spz")
bpy.ops.wm.open_mainfile(filepath=f"{work}/rigged.blend")
armature = bpy.context.active_object
assert armature.type == "ARMATURE"
done(ops.set_motion(motion="POSE"))
armature.pose.bones[0].rotation_quaternion = (0.8, 0.6, 0, 0)
bpy.context.view_layer.update()
done(ops.bake_ply(filepath=f"{work}/posed.ply"))
assert open(f"{work}/posed.ply", "rb").read() != open(f"{work}/import.ply", "rb").read()
assert not {"scipy", "gaussforge", "PIL", "plyfile"} & set(sys.modules)
"""

DRAWING = """
bpy.ops.wm.open_mainfile(filepath=f"{work}/rigged.blend")
scene = bpy.context.scene
splats = next(object for object in bpy.data.objects if object.type == "POINTCLOUD")
world = numpy.array(splats.matrix_world)
corners = numpy.array(splats.bound_box) @ world[:3, :3].T + world[:3, 3]
size = corners.max(axis=0) - corners.min(axis=0)
scene.camera = bpy.data.objects.new("Camera", bpy.data.cameras.new("Camera"))
scene.collection.objects.link(scene.camera)
scene.camera.location = corners.mean(axis=0) - (0, 3 * size.max(), 0)
scene.camera.rotation_euler = (1.5707963, 0, 0)
done(ops.set_display(display="DRAWER"))
done(ops.render_splats(filepath=f"{work}/drawn.png", frame_start=1, frame_end=1, width=64, height=48))
alpha = numpy.array(bpy.data.images.load(f"{work}/drawn.png").pixels).reshape(48, 64, 4)[..., 3]
assert alpha.max() > 0.5 and alpha[0].max() == alpha[:, 0].max() == 0, "no picture of the splats"
assert not {"scipy", "gaussforge", "PIL", "plyfile"} & set(sys.modules)
"""


def build(output, *arguments):
    command = [sys.executable, str(ROOT / ".ci/build_extension.py"), "--output", str(output), *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return next(output.glob("*.zip"))


def child(script, *arguments, user):
    user.mkdir()
    env = {**os.environ, "BLENDER_USER_RESOURCES": str(user), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", CHILD + script + END, *map(str, arguments)]
    done = subprocess.run(command, env=env, cwd=user, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    return build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """The archive without libraries."""
    return build(tmp_path_factory.mktemp("plain"), "--platforms", "any")


@pytest.fixture(scope="module")
def capture(tmp_path_factory):
    """A folder of PLY frames of a bending bar."""
    from gaussianimate.core.formats import write_sequence

    cloud = make_cloud(count=400, degree=1)
    motion = make_capture(cloud, make_rig(cloud, frames=6))
    folder = tmp_path_factory.mktemp("bar")
    write_sequence((motion.load_cloud(frame) for frame in range(6)), folder, "bar", 1, 6)
    return folder


@pytest.fixture(scope="module")
def work(archive, capture, tmp_path_factory):
    """Where a Blender that got the archive did the whole job."""
    folder = tmp_path_factory.mktemp("work")
    child(WHOLE_JOB, archive, capture, folder, user=tmp_path_factory.mktemp("user") / "resources")
    return folder


@pytest.mark.package
def test_archive_holds_only_the_extension(archive):
    names = zipfile.ZipFile(archive).namelist()
    assert {name.split("/")[0] for name in names} <= ALLOWED
    suffixes = {Path(name).suffix for name in names if not name.startswith("wheels/")}
    assert suffixes <= {".py", ".toml", ".glsl", ".npz", ""}
    wheels = [Path(name).name for name in names if name.startswith("wheels/")]
    assert {wheel.split("-")[0] for wheel in wheels} == WHEELS
    assert not [name for name in wheels if "torch" in name or name.startswith("numpy")]


@pytest.mark.package
def test_every_source_is_in_the_archive(archive):
    names = set(zipfile.ZipFile(archive).namelist())
    for room in ("core", "gaussianimate_addon", "gpu_shaders", "operators", "panels"):
        for path in (ROOT / room).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                assert str(path.relative_to(ROOT)) in names


@pytest.mark.package
def test_wheels_fit_every_python_blender_comes_with(archive):
    names = zipfile.ZipFile(archive).namelist()
    for library in ("scipy", "gaussforge", "pillow"):
        tags = {Path(name).name.split("-")[2] for name in names if f"/{library}-" in name}
        assert "cp313" in tags
        if "linux" in archive.name:  # distributions build Blender with newer Pythons
            assert "cp314" in tags


@pytest.mark.package
def test_whole_job_from_the_archive(work):
    assert len(list((work / "baked").glob("*.ply"))) == 2


@pytest.mark.package
def test_a_blender_with_only_numpy(plain, work, capture, tmp_path):
    child(NUMPY_ONLY, plain, capture, work, user=tmp_path / "user")


@pytest.mark.package
@pytest.mark.usefixtures("device")
def test_splats_are_drawn_with_only_numpy(plain, work, capture, tmp_path):
    child(DRAWING, plain, capture, work, user=tmp_path / "user")


def test_the_manifest_names_no_place_that_does_not_exist():
    text = (ROOT / "blender_manifest.toml").read_text()
    assert tomllib.loads(text)["maintainer"] and "example." not in text


def test_versions_agree():
    manifest = tomllib.loads((ROOT / "blender_manifest.toml").read_text("utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert manifest["version"] == project["project"]["version"]
