"""What the sidebar says: drawn into a recorder that refuses properties and operators that are not there."""

from types import SimpleNamespace

import bpy
import pytest
from drawn_panels import Layout, draw, said
from rigs import make_capture, make_cloud, make_rig, make_skin_of

from gaussianimate.core.motion.learned import learn_motion
from gaussianimate.gaussianimate_addon import job as jobs
from gaussianimate.gaussianimate_addon.capture_object import create_capture_object
from gaussianimate.gaussianimate_addon.drawer.viewport import DRAWER, Drawer
from gaussianimate.gaussianimate_addon.motion_store import store_motion
from gaussianimate.gaussianimate_addon.motion_switch import remember_replay
from gaussianimate.gaussianimate_addon.rig_object import apply_rig

PANELS = ("main", "display", "import", "rig", "animate", "bake")


@pytest.fixture
def capture(empty_scene):
    cloud = make_cloud(count=200, degree=0)
    rig = make_rig(cloud, frames=4)
    object = create_capture_object(bpy.context, make_capture(cloud, rig), cloud, "z")
    bpy.context.view_layer.objects.active = object
    return object, rig


@pytest.fixture
def armature(capture):
    object, rig = capture
    armature = apply_rig(bpy.context, object, rig, make_skin_of(rig))
    remember_replay(armature)
    bpy.context.view_layer.objects.active = armature
    return armature


def test_empty_scene_says_what_is_missing(empty_scene):
    assert "import one" in said("main")
    assert "Select a capture; import one first" in said("rig")
    assert "build a rig first" in said("animate")
    assert "Select Gaussian splats" in said("bake")


def test_capture_is_counted(capture):
    assert "200 splats" in said("main")
    assert "first" not in said("rig")
    assert "build a rig first" in said("animate")


def test_rigged_capture(armature):
    assert armature.name in said("main")
    assert "Build Rig Again" in draw("rig").buttons
    layout = draw("animate")
    assert layout.buttons["Replay"].depress and not layout.buttons["Pose Anew"].depress
    bpy.ops.gaussianimate.set_motion(motion="POSE")
    layout = draw("animate")
    assert layout.buttons["Pose Anew"].depress
    assert "press I to key" in " ".join(layout.texts)


def test_settings_reach_the_buttons(capture):
    settings = bpy.context.scene.gaussianimate
    settings.max_bones, settings.joint_threshold = 7, 0.5
    button = draw("rig").buttons["Build Rig"]
    assert (button.max_bones, button.joint_threshold) == (7, pytest.approx(0.5))
    assert button.skeleton == "auto"
    settings.skeleton = "EXTRACTED"
    assert draw("rig").buttons["Build Rig"].skeleton == "extracted"
    settings.skeleton = "ARMATURE"
    assert draw("rig").buttons["Build Rig"].skeleton == ""
    settings.skeleton_armature = bpy.data.objects.new("body", bpy.data.armatures.new("body"))
    assert draw("rig").buttons["Build Rig"].skeleton == "body"
    bpy.context.scene.frame_end = 33
    assert draw("bake").buttons["Bake Frames"].frame_end == 33


def test_rendering_needs_a_camera(capture):
    scene = bpy.context.scene
    assert "Render Splats..." in draw("bake").buttons
    assert "has no camera" in said("bake")
    scene.camera = bpy.data.objects.new("camera", bpy.data.cameras.new("camera"))
    assert "camera" not in said("bake")


def test_a_stale_bind_offers_its_repair(capture):
    object, _ = capture
    object.scale = (2, 2, 2)
    object.select_set(True)
    bpy.ops.object.transform_apply(location=False, rotation=False, scale=True)
    layout = draw("rig")
    assert "Rebind" in layout.buttons
    assert "was applied to its positions only" in " ".join(layout.texts)


def test_the_native_export_is_explained(capture):
    assert "own PLY export" in said("bake")


def test_display_says_who_draws(capture, monkeypatch):
    layout = draw("display")
    assert layout.buttons["Native"].depress and not layout.buttons["GaussiAnimate"].depress
    assert layout.buttons["GaussiAnimate"].display == "DRAWER"
    bpy.ops.gaussianimate.set_display(display="DRAWER")
    layout = draw("display")
    assert layout.buttons["GaussiAnimate"].depress and "Try Again" not in layout.buttons
    splats = SimpleNamespace(
        atlas=SimpleNamespace(spans=[range(200)], memory=1_234_567, notes=("Colours are simpler",)),
        problem="Something is not drawn",
    )
    monkeypatch.setattr(Drawer, "splats", splats)
    said = " ".join(draw("display").texts)
    assert "200 splats, 1.2 MB on the graphics card" in said
    assert "Colours are simpler" in said and "Something is not drawn" in said


def test_a_failed_drawer_says_why_and_tries_again(capture, monkeypatch):
    bpy.ops.gaussianimate.set_display(display="DRAWER")
    monkeypatch.setattr(DRAWER, "failure", "The driver refused")
    layout = draw("display")
    assert "The driver refused" in " ".join(layout.texts)
    assert layout.buttons["Try Again"].display == "DRAWER"
    bpy.ops.gaussianimate.set_display(display=layout.buttons["Try Again"].display)
    assert DRAWER.failure is None


def test_a_running_job_is_shown(capture, monkeypatch):
    job = jobs.Job("Build Rig", None, lambda state, progress: progress("Skin bones", 0.4))
    while job.stage != "Skin bones":
        job.advance(0.05)
    monkeypatch.setattr(jobs, "_running", job)
    assert "Build Rig: Skin bones" in said("main") and "Esc" in said("main")
    for name in PANELS:
        draw(name)


def test_menu_entries_and_file_handler(addon):
    layout = Layout()
    for menu in (bpy.types.TOPBAR_MT_file_import, bpy.types.TOPBAR_MT_file_export):
        for function in menu._dyn_ui_initialize():
            if function.__module__.startswith("gaussianimate."):
                function(SimpleNamespace(layout=layout), bpy.context)
    assert "Gaussian splats (.ply)" in layout.buttons and len(layout.buttons) == 2
    handler = bpy.types.GAUSSIANIMATE_FH_capture
    assert handler.bl_import_operator == "gaussianimate.import_capture"
    assert ".ply" in handler.bl_file_extensions.split(";")


def test_edited_joints_are_told_and_refitted_by_a_button(capture):
    object, rig = capture
    armature = apply_rig(bpy.context, object, rig, make_skin_of(rig))
    bpy.context.view_layer.objects.active = armature
    assert "Refit Skeleton" not in draw("rig").buttons  # nothing was learned to be solved again
    store_motion(armature, learn_motion(rig))
    assert "Refit Skeleton" in draw("rig").buttons and "edit the bones in Edit Mode" in said("rig")
    bpy.ops.object.mode_set(mode="EDIT")
    armature.data.edit_bones["joint_2"].head.x += 0.3
    assert "(1 moved)" in said("rig")  # while they are edited
    bpy.ops.object.mode_set(mode="OBJECT")
    assert "(1 moved)" in said("rig")
    bpy.ops.gaussianimate.refit_skeleton()
    assert "were edited" not in said("rig") and "error of the skeleton alone" in said("rig")
