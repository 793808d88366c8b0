"""Every viewport sorts and draws for itself: split, quad, camera and orthographic views, a second window."""

from __future__ import annotations

import sys
from pathlib import Path

import bpy

sys.path.insert(0, str(Path(__file__).parent))
import driver
import stage
from stage import BACK, BLUE, FRONT, GREEN, RED, SIDE, TOP, look, until

driver.install()


def stacks():
    """Balls behind each other along Y, Z and X, of three objects that interleave along Y."""
    near, far = -0.4, 0.4
    stage.ball("outer", ((0, near, 0), RED), ((0, far, 0), BLUE), ((1, far, 0), BLUE))
    stage.ball("middle", ((0, 0, 0), GREEN), ((1, 0, 0), GREEN))
    stage.ball("others", ((-1, 0, far), RED), ((-1, 0, near), BLUE), ((far, 0, 1), RED), ((near, 0, 1), BLUE))


def front(shot, view, window=None):
    shot.check(view, (0, -0.4, 0), RED, window=window)
    shot.check(view, (1, 0, 0), GREEN, window=window)
    shot.check(view, (0.5, 0, 0.5), None, window=window)


def back(shot, view, window=None):
    shot.check(view, (0, 0.4, 0), BLUE, window=window)
    shot.check(view, (1, 0.4, 0), BLUE, window=window)


def script(output):
    stage.clean_scene()
    stacks()
    yield from single()
    yield from split()
    yield from quad()
    yield from camera()
    yield from second_window()
    yield from another_scene()
    yield from nothing_twice()


def single():
    view = stage.views()[0]
    for perspective in ("PERSP", "ORTHO"):
        look(view[2], FRONT, (0, 0, 0), perspective=perspective)
        yield from until(f"views_front_{perspective}", lambda shot: front(shot, view))
        look(view[2], BACK, (0, 0, 0), perspective=perspective)
        yield from until(f"views_back_{perspective}", lambda shot: back(shot, view))


def split():
    """Two areas look from opposite sides."""
    with bpy.context.temp_override(**driver.view()):
        bpy.ops.screen.area_split(direction="VERTICAL", factor=0.5)
    yield 0.5
    one, other = stage.views()
    look(one[2], FRONT, (0, 0, 0), 7)
    look(other[2], BACK, (0, 0, 0), 7)

    def both(shot):
        front(shot, one)
        back(shot, other)

    yield from until("views_split", both)
    orders = [view.order for view in stage.drawer().views.values() if view.order.count]
    assert len(orders) == 2 and orders[0] is not orders[1]


def quad():
    area = stage.views()[0][0]
    region = next(r for r in area.regions if r.type == "WINDOW")
    with bpy.context.temp_override(area=area, region=region):
        bpy.ops.screen.region_quadview()
    yield 1.0
    views = [view for view in stage.views() if view[0] == area]
    assert len(views) == 4
    for view, rotation in zip(views, (TOP, FRONT, SIDE, BACK), strict=True):
        if rotation is BACK:
            look(view[2], BACK, (0, 0, 0), 9)
        else:
            view[2].view_location, view[2].view_distance = (0, 0, 0), 4.5

    def each(shot):
        for view in views:  # told apart by where they look, not by their number
            forward = view[2].view_rotation.to_matrix() @ stage.Vector((0, 0, -1))
            if forward.z < -0.9:
                shot.check(view, (-1, 0, 0.4), RED)
            elif forward.x < -0.9:
                shot.check(view, (0.4, 0, 1), RED)
            elif forward.y > 0.9:
                front(shot, view)
            else:
                back(shot, view)

    yield from until("views_quad", each)
    with bpy.context.temp_override(area=area, region=views[-1][1]):
        bpy.ops.screen.region_quadview()
    yield 0.5


def camera():
    scene = bpy.context.scene
    scene.camera = bpy.data.objects.new("camera", bpy.data.cameras.new("camera"))
    scene.collection.objects.link(scene.camera)
    scene.camera.location, scene.camera.rotation_euler = (0, -6, 0), FRONT
    scene.camera.data.shift_x = 0.1
    view = stage.views()[0]
    view[2].view_perspective = "CAMERA"
    yield from until("views_camera", lambda shot: front(shot, view))
    scene.camera.data.type = "ORTHO"
    yield from until("views_camera_ortho", lambda shot: front(shot, view))
    view[2].view_perspective = "PERSP"
    bpy.data.objects.remove(scene.camera)


def second_window():
    """Opened and closed while the first is drawn."""
    first = bpy.context.window_manager.windows[0]
    known = stage.drawer().views.keys() | set()
    with bpy.context.temp_override(**driver.view()):
        bpy.ops.wm.window_new()
    yield 1.5
    second = next(w for w in bpy.context.window_manager.windows if w != first)
    view, other = stage.views(second)[0], stage.views(first)[0]
    look(view[2], BACK, (0, 0, 0), 7)
    yield from until("views_second_window", lambda shot: back(shot, view, second))
    assert stage.drawer().views.keys() - known, "the second window has its own order"
    with bpy.context.temp_override(window=second):
        bpy.ops.wm.window_close()
    yield 1.0
    look(other[2], FRONT, (0, 0, 0), 7)
    yield from until("views_window_closed", lambda shot: front(shot, other))
    look(other[2], TOP, (0, 0, 0), 7)  # sorting looks after closed regions, too
    yield 1.0
    assert not stage.drawer().views.keys() - known, "what was kept of the closed window is freed"


def another_scene():
    """A window of another scene, with nothing but an object that is in both."""
    first, view = bpy.context.window_manager.windows[0], stage.views()[0]
    other = bpy.data.scenes.new("other")
    other.collection.objects.link(bpy.data.objects["middle"])
    with bpy.context.temp_override(**driver.view()):
        bpy.ops.wm.window_new_main()
    yield 1.0
    second = next(w for w in bpy.context.window_manager.windows if w != first)
    second.scene = other
    yield 1.0
    theirs = stage.views(second)[0]
    look(theirs[2], BACK, (0, 0, 0), 7)

    def check(shot):
        shot.check(theirs, (0, 0, 0), GREEN, window=second)
        shot.check(theirs, (1, 0, 0), GREEN, window=second)
        shot.check(theirs, (-1, 0, 0.4), None, window=second)

    yield from until("views_another_scene", check)
    assert first.scene != other and len(stage.drawer().scenes) == 2
    with bpy.context.temp_override(window=second):
        bpy.ops.wm.window_close()
    yield 0.5
    look(view[2], FRONT, (0, 0, 0), 7.5)
    yield from until("views_first_scene", lambda shot: front(shot, view))


def nothing_twice():
    """A redraw in which nothing changed takes the picture it has."""
    viewport = stage.ours("gaussianimate_addon.drawer.viewport")
    area, _, data = stage.views()[0]
    look(data, FRONT, (0, 0, 0), 7)
    yield 2.0
    drawn, redrawn, draw, composite = [], [], viewport.draw_frame, viewport.screen.composite
    viewport.draw_frame = lambda *arguments: (drawn.append(1), draw(*arguments))[1]
    viewport.screen.composite = lambda *arguments, **more: (redrawn.append(1), composite(*arguments, **more))[
        1
    ]
    try:
        for _ in range(5):
            area.tag_redraw()
            yield 0.2
        assert len(redrawn) >= 10 and not drawn
        data.view_distance = 6.5
        yield from until("views_nearer", lambda shot: front(shot, (area, _region(area), data)))
        assert drawn
    finally:
        viewport.draw_frame, viewport.screen.composite = draw, composite


def _region(area):
    return next(region for region in area.regions if region.type == "WINDOW")


stage.run("drawer_views", script)
