"""A skeleton is corrected with real keys and refitted: Tab, delete, subdivide, the operator, undo."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import bpy
import numpy as np
from mathutils import Quaternion

sys.path.insert(0, str(Path(__file__).parent))
import driver
import stage
from driver import press, view, wait_until
from stage import BLUE, GREEN, RED, Shot, look, until

driver.install()
FRAMES, SPLATS = 24, 4000
PLACES = np.array([[0, 0, 0], [1, 0, 0], [2, 0, 0], [3, 0, 0.0]])


def make():
    """Add a bar of three parts that bends at x = 1 and x = 2, its frames and its rig; return both objects."""
    rng = np.random.default_rng(0)
    positions = rng.uniform([0, -0.12, -0.12], [3, 0.12, 0.12], (SPLATS, 3))
    part = np.minimum(positions[:, 0].astype(int), 2)
    cloud = stage.make_cloud(positions, np.array([RED, BLUE, GREEN])[part])
    time = np.linspace(0, 2 * np.pi, FRAMES)
    half = np.stack([0 * time, 0.5 * np.sin(time), 0.4 - 0.4 * np.cos(time)], axis=1)
    turns = np.zeros((FRAMES, 4, 4))
    turns[..., 0] = 1
    turns[:, :3, 0], turns[:, :3, 2] = np.cos(half), np.sin(half)
    rig = stage.ours("core.rigging.rig").Rig(
        rest=cloud.positions,
        indices=part[:, None].astype(np.int32),
        weights=np.ones((SPLATS, 1), np.float32),
        bone_transforms=np.zeros((FRAMES, 3, 3, 4)),
        joint_names=("hip", "knee", "ankle", "end"),
        joint_parents=np.int32([-1, 0, 1, 2]),
        joint_positions=PLACES,
        bone_joints=np.int32([0, 1, 2]),
        joint_rotations=turns,
        root_translations=np.zeros((FRAMES, 3)),
        frames=np.arange(FRAMES, dtype=np.int32),
        fps=24.0,
        canonical_frame=0,
    )
    rig.bone_transforms[:] = stage.ours("core.rigging.posing").joint_motions(rig)[:, rig.bone_joints]
    skin = stage.ours("core.skinning.skin").make_skin(cloud.positions, rig.indices, rig.weights, bone_count=3)
    deform = stage.ours("core.deform.deform").deform_cloud
    clouds = [deform(cloud, skin, pose) for pose in rig.bone_transforms]
    capture = stage.ours("core.capture").Capture(
        name="bar",
        positions=np.stack([one.positions for one in clouds]),
        frame_valid=np.ones(FRAMES, bool),
        load_cloud=lambda frame: clouds[frame],
        fps=24.0,
        up="z",
    )
    object = stage.ours("gaussianimate_addon.capture_object").create_capture_object(
        bpy.context, capture, cloud, "z"
    )
    motion = stage.ours("core.motion.learned").learn_motion(rig)
    armature = stage.ours("gaussianimate_addon.rig_object").apply_rig(bpy.context, object, rig, skin, motion)
    stage.ours("gaussianimate_addon.drawer.display").set_display(object, "DRAWER")
    return object.name, armature.name, replace(rig)


class Scene:
    """The two objects, looked up by name at every question."""

    def __init__(self, splats, armature):
        self._names = splats, armature

    @property
    def splats(self):
        return bpy.data.objects[self._names[0]]

    @property
    def armature(self):
        return bpy.data.objects[self._names[1]]

    def joints(self):
        bones = stage.ours("gaussianimate_addon.armature").indexed_bones(self.armature, "gaussianimate_joint")
        return [bone.name for bone in bones]

    def learned(self):
        return stage.ours("gaussianimate_addon.motion_store").load_motion(self.armature).joint_names

    def edited(self):
        return stage.ours("gaussianimate_addon.skeleton_bones").skeleton_is_edited(self.armature)

    def select(self, name):
        """Make a bone the only selected one in Edit Mode."""
        bones = self.armature.data.edit_bones
        for bone in bones:
            bone.select = bone.select_head = bone.select_tail = bone.name == name
        bones.active = bones[name]


def idle():
    return stage.ours("gaussianimate_addon.job").running() is None


def centre(rig, part, frame):
    """Where the middle of a part is in a frame."""
    motion = rig.bone_transforms[frame, part]
    return motion[:, :3] @ [part + 0.5, 0, 0.08] + motion[:, 3]


def check_frames(name, shown, rig):
    """The three parts are where the capture has them, in two frames."""
    overlay = shown[0].spaces.active.overlay
    overlay.show_bones = False
    for frame in (6, 12):
        bpy.context.scene.frame_set(frame + 1)
        yield 0.6
        shot = Shot(f"refit_{name}_{frame}")
        for part, color in enumerate((RED, BLUE, GREEN)):
            shot.check(shown, centre(rig, part, frame), color, tolerance=0.2)
    overlay.show_bones = True


def refit(scene, mode):
    with bpy.context.temp_override(**view()):
        assert bpy.ops.gaussianimate.refit_skeleton("INVOKE_DEFAULT") == {"RUNNING_MODAL"}
    yield from wait_until(idle, 60, "the refit to end")
    yield 0.5
    assert scene.armature.mode == mode, scene.armature.mode
    assert scene.edited() is None, scene.edited()


def keys(*which):
    for key in which:
        modifiers = {"ctrl": "+" in key, "shift": "^" in key}
        press(key.strip("+^"), **modifiers)
        yield 0.4


def script(output):
    stage.clean_scene()
    splats, armature, rig = make()
    scene = Scene(splats, armature)
    shown = stage.views()[0]
    look(shown[2], at=(1.5, 0, 0), distance=7)
    with bpy.context.temp_override(**view()):
        bpy.context.view_layer.objects.active = scene.armature
        scene.armature.select_set(True)
    yield from driver.show_tab()
    yield 1.0
    yield from check_frames("before", shown, rig)
    bpy.context.scene.frame_set(1)
    with bpy.context.temp_override(**view()):
        bpy.ops.ed.undo_push(message="Start")

    # Tab, delete the knee, straight from Edit Mode to the refit.
    yield from keys("TAB")
    assert scene.armature.mode == "EDIT"
    scene.select("knee")
    yield 0.3
    yield from keys("X")
    yield 1.0  # the menu opens
    yield from keys("B")
    yield from wait_until(lambda: "knee" not in scene.armature.data.edit_bones, 5, "X, B to delete the bone")
    assert "1 removed" in scene.edited()
    yield 1.0
    driver.picture("refit_edited")
    yield from refit(scene, "OBJECT")
    assert scene.joints() == ["hip", "ankle"] and scene.learned() == ("hip", "ankle", "end")
    driver.picture("refit_done")
    print(stage.ours("gaussianimate_addon.properties").object_notes(scene.splats).rig_notes)
    yield from check_frames("deleted", shown, rig)

    # One step back: as edited, in Object Mode; further back through the edit; and forth again.
    yield from keys("Z+")
    assert scene.armature.mode == "OBJECT" and scene.learned() == ("hip", "knee", "ankle", "end")
    assert "knee" not in scene.armature.data.bones and "1 removed" in scene.edited()
    yield from keys("Z+")
    yield from keys("Z+")
    assert scene.armature.mode == "EDIT" and "knee" in scene.armature.data.edit_bones, scene.armature.mode
    for _ in range(3):
        yield from keys("Z+^")
    yield 0.5
    assert scene.armature.mode == "OBJECT" and scene.joints() == ["hip", "ankle"]
    assert scene.learned() == ("hip", "ankle", "end") and scene.edited() is None
    yield from check_frames("redone", shown, rig)

    # The joint comes back: subdivide the hip's bone, from Pose Mode.
    with bpy.context.temp_override(**view()):
        bpy.ops.object.mode_set(mode="POSE")
    yield from keys("TAB")
    assert scene.armature.mode == "EDIT"
    bones = scene.armature.data.edit_bones
    bones["hip"].tail = bones["ankle"].head
    scene.select("hip")
    with bpy.context.temp_override(**view()):
        bpy.ops.armature.subdivide()
    yield 0.3
    yield from keys("TAB")
    assert scene.armature.mode == "POSE"
    yield from refit(scene, "POSE")
    assert scene.learned() == ("hip", "hip.001", "ankle", "end")
    print(stage.ours("gaussianimate_addon.properties").object_notes(scene.splats).rig_notes)
    yield from check_frames("again", shown, rig)

    # Posed anew: splats follow the new joint.
    with bpy.context.temp_override(**view()):
        bpy.ops.gaussianimate.set_motion(motion="POSE")
    bone = scene.armature.pose.bones["hip.001"]
    rest = bone.bone.matrix_local.to_quaternion()
    bone.rotation_quaternion = rest.inverted() @ Quaternion((0, 1, 0), -np.pi / 4) @ rest
    yield 1.0
    driver.picture("refit_posed_bones")
    shown[0].spaces.active.overlay.show_bones = False

    def posed(shot):
        shot.check(shown, (0.5, 0, 0.08), RED, tolerance=0.2)
        reach = 1.4 * np.sqrt(0.5)
        shot.check(shown, (1 + reach, 0, reach + 0.08), GREEN, tolerance=0.25)
        shot.check(shown, (2.5, 0, 0), None)

    yield from until("refit_posed", posed)


stage.run("refit", script)
