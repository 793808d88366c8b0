"""Secondary motion in a window: rig the sample, drag a bone, whose skin follows, undo, play, bake, switch.

The rigged sample is kept in build/gui/secondary.blend; remove that to build it anew. Pictures are left of the
same pose rigid and live.
"""

from __future__ import annotations

import sys
import time
from importlib import import_module
from pathlib import Path

import bpy
import numpy as np
from bpy_extras.view3d_utils import location_3d_to_region_2d
from mathutils import Quaternion, Vector

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import driver
from driver import view, wait_until

driver.install()
sys.modules.setdefault("gaussianimate", import_module(driver.PACKAGE))  # as the examples import it
new_pose = import_module("new_pose")

RIGGED = driver.OUT / "secondary.blend"
SPLATS = 12_000


def ours(name):
    """Return a module of the installed extension."""
    return import_module(f"{driver.PACKAGE}.gaussianimate_addon.{name}")


def state():
    return ours("secondary.live").SESSION


def idle():
    return ours("job").running() is None


def call(operator, *arguments, **settings):
    with bpy.context.temp_override(**view()):
        return operator(*arguments, **settings)


def armature():
    return next(object for object in bpy.data.objects if object.type == "ARMATURE")


def skin():
    """Location and rotation (B, 7) of the skin bones."""
    bones = [bone for bone in armature().pose.bones if "gaussianimate_bone" in bone.bone]
    return np.array([[*bone.location, *bone.rotation_quaternion] for bone in bones])


def degrees():
    """Coverage of the pose that stands, the worst part's."""
    return float(np.degrees(state().known[armature().session_uid].coverage.max()))


def build():
    """Import and rig the sample, and save it."""
    capture = import_module("sample").load_sample()
    path = driver.OUT / "sample.npz"
    np.savez(
        path,
        vertices=capture.positions,
        faces=capture.faces,
        colors=capture.colors,
        fps=capture.fps,
        up=capture.up,
    )
    call(bpy.ops.gaussianimate.import_capture, "INVOKE_DEFAULT", filepath=str(path), splat_count=SPLATS)
    yield from wait_until(idle, 120, "the import")
    yield 0.5
    call(bpy.ops.gaussianimate.build_rig, "INVOKE_DEFAULT")
    yield from wait_until(idle, 800, "the rig")
    yield 1.0
    bpy.ops.wm.save_as_mainfile(filepath=str(RIGGED))


def look():
    """Turn the view to the front of the body, and show splats and skeleton only."""
    area = view()["area"]
    space = area.spaces.active
    space.overlay.show_floor = space.overlay.show_axis_x = space.overlay.show_axis_y = False
    space.overlay.show_cursor = False
    space.shading.background_type = "VIEWPORT"
    space.shading.background_color = (0.9, 0.9, 0.9)
    region = space.region_3d
    splats = next(o for o in bpy.data.objects if o.type == "POINTCLOUD" and o.users_collection)
    corners = [splats.matrix_world @ Vector(corner) for corner in splats.bound_box]
    region.view_perspective = "PERSP"
    region.view_rotation = Quaternion((0.7071, 0.7071, 0, 0))
    region.view_location = sum(corners, Vector()) / 8
    region.view_distance = 1.3 * (max(c.z for c in corners) - min(c.z for c in corners))
    region.update()


def limb():
    """Return the bone nearest to the body of the limb that reaches furthest sideways."""
    bones = [armature().pose.bones[b.name] for b in armature().data.collections["Skeleton"].bones]
    return new_pose._limb(armature(), bones, Vector((1.0, 0, 0)))[0]


def scroll_down():
    """Turn the wheel over the sidebar until the panels below show."""
    area = view()["area"]
    sidebar = next(region for region in area.regions if region.type == "UI")
    x, y = sidebar.x + sidebar.width // 2, sidebar.y + sidebar.height // 2
    move(x, y)
    for _ in range(30):
        view()["window"].event_simulate("WHEELDOWNMOUSE", "PRESS", x=int(x), y=int(y))
        yield 0.05


def move(x, y):
    view()["window"].event_simulate("MOUSEMOVE", "NOTHING", x=int(x), y=int(y))


def drag(bone, steps=12):
    """Turn a bone with R and the mouse; yields while it does, and returns how skin bones stood on the way."""
    where = view()
    region, window = where["region"], where["window"]
    middle = location_3d_to_region_2d(
        region, where["area"].spaces.active.region_3d, armature().matrix_world @ bone.head
    )
    x, y = region.x + middle.x, region.y + middle.y
    move(x + 150, y)
    yield 0.2
    for value in ("PRESS", "RELEASE"):
        window.event_simulate("R", value, x=int(x + 150), y=int(y))
    yield 0.3
    seen = []
    for step in range(1, steps + 1):
        angle = 1.1 * step / steps
        move(x + 150 * np.cos(angle), y + 150 * np.sin(angle))
        yield 0.1
        seen.append((skin(), degrees()))
    driver.picture("secondary_dragging")
    for value in ("PRESS", "RELEASE"):
        window.event_simulate(
            "LEFTMOUSE", value, x=int(x + 150 * np.cos(angle)), y=int(y + 150 * np.sin(angle))
        )
    yield 0.3
    return seen


def script():
    if not RIGGED.exists():
        bpy.ops.object.select_all(action="SELECT")
        bpy.ops.object.delete()
        yield from build()
    bpy.ops.wm.open_mainfile(filepath=str(RIGGED), load_ui=False)
    yield 2.0
    yield from driver.show_tab()
    call(bpy.ops.gaussianimate.set_motion, motion="POSE")
    call(bpy.ops.gaussianimate.set_display, display="DRAWER")
    look()
    yield from scroll_down()
    yield 2.0
    assert armature().gaussianimate.secondary_motion == "LIVE" and not state().failures
    rest = skin()

    # A bone is dragged: skin bones follow while the mouse moves, and the coverage says how far it went.
    bone = limb()
    for each in armature().pose.bones:
        each.select = each == bone
    armature().data.bones.active = bone.bone
    bpy.ops.ed.undo_push(message="before")
    seen = yield from drag(bone)
    assert bone.rotation_quaternion.angle > 0.5, bone.rotation_quaternion
    moved = [np.abs(one[0] - other[0]).max() for one, other in zip(seen[1:], seen, strict=False)]
    print("skin bones moved by", np.round(moved, 4).tolist(), flush=True)
    print("coverage went over", np.round([s[1] for s in seen], 1).tolist(), flush=True)
    assert sum(m > 1e-4 for m in moved) > len(moved) / 2
    assert seen[-1][1] != seen[0][1]
    posed = skin()
    assert np.abs(posed - rest).max() > 1e-3
    yield 1.0
    driver.picture("secondary_dragged")
    call(bpy.ops.ed.undo)
    yield 0.5
    np.testing.assert_allclose(skin(), rest, atol=1e-5)
    call(bpy.ops.ed.redo)
    yield 0.5
    np.testing.assert_allclose(skin(), posed, atol=1e-5)
    call(bpy.ops.ed.undo)
    yield 0.5

    # A motion is keyed and played.
    scene = bpy.context.scene  # references do not outlive an undo
    new_pose.key_new_pose(armature(), 1, 20)
    scene.frame_start, scene.frame_end = 1, 20
    found = {}
    for frame in (5, 12, 20):
        scene.frame_set(frame)
        yield 0.3
        found[frame] = skin()
    played = {}

    def note(scene, *_):
        played.setdefault(scene.frame_current, skin())

    scene.sync_mode = "NONE"
    scene.frame_set(1)
    bpy.app.handlers.frame_change_post.append(note)
    started = time.monotonic()
    with bpy.context.temp_override(**view()):
        bpy.ops.screen.animation_play()
    yield from wait_until(lambda: len(played) >= 20, 90, "a round of playback")
    with bpy.context.temp_override(**view()):
        bpy.ops.screen.animation_cancel(restore_frame=False)
    bpy.app.handlers.frame_change_post.remove(note)
    print(f"20 frames played in {time.monotonic() - started:.1f} s", flush=True)
    for frame, values in found.items():
        np.testing.assert_allclose(played[frame], values, atol=1e-5)

    # The same pose, live and rigid.
    scene.frame_set(20)
    space = view()["area"].spaces.active
    space.overlay.show_overlays = space.show_gizmo = False
    yield 1.5
    driver.picture("secondary_live")
    call(bpy.ops.gaussianimate.set_secondary_motion, mode="OFF")
    yield 1.5
    assert np.abs(skin()[:, :3]).max() < 1e-6
    driver.picture("secondary_rigid")
    space.overlay.show_overlays = space.show_gizmo = True
    armature().gaussianimate.colour_bones = True
    yield 1.5
    driver.picture("secondary_colours")
    armature().gaussianimate.colour_bones = False
    call(bpy.ops.gaussianimate.set_secondary_motion, mode="LIVE")
    yield 0.5
    np.testing.assert_allclose(skin(), found[20], atol=1e-5)

    # Baked beside the user; undone in one step.
    call(bpy.ops.gaussianimate.bake_partmm, "INVOKE_DEFAULT")
    yield from wait_until(idle, 60, "the bake")
    yield 0.5
    assert armature().gaussianimate.secondary_motion == "BAKED"
    driver.picture("secondary_baked")
    scene.frame_set(12)
    yield 0.5
    print("bake against live", np.abs(skin() - found[12]).max(), flush=True)
    call(bpy.ops.ed.undo)
    yield 0.5
    print("undone", flush=True)
    assert armature().gaussianimate.secondary_motion == "LIVE"
    assert not state().failures, state().failures


driver.run(script, limit=900)
