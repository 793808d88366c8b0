"""Bones that are shown in front: where they are masked, and which are."""

from types import SimpleNamespace

import bpy
import numpy as np
import pytest
from mathutils import Euler, Matrix
from scenes import build, pose

from gaussianimate.core.render.camera import Camera
from gaussianimate.gaussianimate_addon.armature import SKELETON, SKIN_BONES
from gaussianimate.gaussianimate_addon.drawer import screen
from gaussianimate.gaussianimate_addon.drawer.bone_silhouettes import bone_silhouettes
from gaussianimate.gaussianimate_addon.drawer.bone_templates import Template
from gaussianimate.gaussianimate_addon.drawer.bones_in_front import draw_masks, facing

PLACE = Matrix.Translation((2, -1, 3)) @ Euler((0.4, 1, -2)).to_matrix().to_4x4() @ Matrix.Scale(1.5, 4)
SIZE = 128


@pytest.fixture
def space(scene):
    return next(area.spaces[0] for area in bpy.context.screen.areas if area.type == "VIEW_3D")


@pytest.fixture
def armature(scene):
    _, armature, _ = build(scene, armature_world=PLACE)
    pose(armature, 1)
    return armature


def silhouettes(space):
    context = SimpleNamespace(view_layer=bpy.context.view_layer, space_data=space)
    return bone_silhouettes(context, bpy.context.evaluated_depsgraph_get())


def corners(found, wanted=lambda template: True):
    """Return all points (n, V, 3) of templates in world space."""
    points = []
    for template, places in found:
        if wanted(template):
            local = np.column_stack([template.points, np.ones(len(template.points))])
            points += list(np.einsum("nij,vj->nvi", places[:, :3], local))
    return points


def lines(template):
    return template.wire


def shown(armature):
    """Return heads and tails (n, 2, 3) of the visible pose bones in world space."""
    bones = armature.pose.bones
    return np.array(
        [
            [armature.matrix_world @ end for end in (bone.head, bone.tail)]
            for bone in bones
            if any(c.is_visible for c in bone.bone.collections)
        ]
    )


def assert_spans(points, ends):
    """Each bone's points reach from its head to its tail, and no farther."""
    assert len(points) == len(ends)
    reached = []
    for each in points:
        spread = np.linalg.norm(each[:, None] - each[None], axis=2)
        a, b = np.unravel_index(spread.argmax(), spread.shape)
        reached.append([each[a], each[b]])
    reached = np.array(reached)
    both = np.concatenate([reached, reached[:, ::-1]])
    for pair in ends:
        assert np.abs(both - pair).max(axis=(1, 2)).min() < 1e-4


@pytest.mark.parametrize("kind", ["OCTAHEDRAL", "STICK", "WIRE"])
def test_shapes_reach_from_head_to_tail(armature, space, kind):
    armature.data.display_type = kind
    assert len(shown(armature)) > 1
    assert_spans(corners(silhouettes(space), lines), shown(armature))


def test_every_bone_ends_in_balls_and_joined_ones_share_theirs(armature, space):
    balls = [p for t, places in silhouettes(space) if t.faces_eye for p in places[:, :3, 3]]
    ends = shown(armature)
    joined = [
        b.bone.use_connect and b.parent is not None
        for b in armature.pose.bones
        if any(c.is_visible for c in b.bone.collections)
    ]
    assert len(balls) == 2 * len(ends) - sum(joined)
    for tail in ends[:, 1]:
        assert np.abs(np.array(balls) - tail).max(axis=1).min() < 1e-4


def test_boxes_and_envelopes_have_the_bone_s_width(armature, space):
    bone = next(b for b in armature.data.bones if any(c.is_visible for c in b.collections))
    for other in armature.data.bones:
        armature.pose.bones[other.name].hide = other != bone
    armature.pose.bones[bone.name].matrix_basis.identity()
    bpy.context.view_layer.update()
    armature.data.display_type = "BBONE"
    bone.bbone_x, bone.bbone_z = 0.3, 0.1
    box, _ = corners(silhouettes(space))
    to_bone = np.linalg.inv(np.array(armature.matrix_world @ armature.pose.bones[bone.name].matrix))
    local = box @ to_bone[:3, :3].T + to_bone[:3, 3]
    np.testing.assert_allclose(np.abs(local).max(axis=0), [0.3, bone.length, 0.1], atol=1e-4)
    armature.data.display_type = "ENVELOPE"
    bone.head_radius, bone.tail_radius = 0.2, 0.4
    ((_, places),) = silhouettes(space)
    sizes = np.linalg.norm(places[:, :3, 0], axis=1) / PLACE.to_scale()[0]
    assert sizes.min() == pytest.approx(0.2, abs=1e-4) and sizes.max() == pytest.approx(0.4, abs=1e-4)


def test_edit_mode_shows_edit_bones(armature, space):
    bpy.context.view_layer.objects.active = armature
    bpy.ops.object.mode_set(mode="EDIT")
    try:
        bones = [b for b in armature.data.edit_bones if any(c.is_visible for c in b.collections)]
        bones[0].tail = bones[0].tail + Matrix.Rotation(1, 3, "X") @ bones[0].vector
        ends = np.array([[armature.matrix_world @ end for end in (b.head, b.tail)] for b in bones])
        assert_spans(corners(silhouettes(space), lines), ends)
    finally:
        bpy.ops.object.mode_set(mode="OBJECT")


def test_custom_shapes_stand_where_blender_puts_them(armature, space):
    mesh = bpy.data.meshes.new("widget")
    mesh.from_pydata([(0, 0, 0), (1, 0, 0), (0, 2, 0)], [(0, 1), (1, 2)], [])
    bone, *others = armature.pose.bones
    assert any(c.is_visible for c in bone.bone.collections)
    for other in others:
        other.hide = True
    bone.custom_shape = bpy.data.objects.new("widget", mesh)
    bone.custom_shape_scale_xyz = 1, 2, 3
    bone.custom_shape_translation = 0.1, 0.2, 0.3
    bone.custom_shape_rotation_euler = 0, 0, np.pi / 2
    bpy.context.view_layer.update()
    (points,) = corners(silhouettes(space), lines)
    length = bone.bone.length
    local = Matrix.LocRotScale((0.1, 0.2, 0.3), Euler((0, 0, np.pi / 2)), (length, 2 * length, 3 * length))
    to_world = armature.matrix_world @ bone.matrix @ local
    expected = [to_world @ mesh.vertices[i].co for i in (0, 1, 1, 2)]
    np.testing.assert_allclose(points, np.array(expected), atol=1e-4)
    mesh.vertices[1].co.x = 5
    (moved,) = corners(silhouettes(space), lines)
    assert np.abs(moved - points).max() > 1
    armature.data.show_bone_custom_shapes = False
    (points,) = corners(silhouettes(space), lines)
    assert len(points) > 4, "the usual octahedron"


def test_what_is_not_visible_is_not_masked(armature, space):
    def count():
        return len(corners(silhouettes(space), lines))

    collections = armature.data.collections
    all_bones = len(armature.pose.bones)
    collections[SKIN_BONES].is_visible = True
    assert count() == all_bones
    armature.pose.bones[0].hide = True
    assert count() == all_bones - 1
    collections[SKELETON].is_visible = False
    assert 0 < count() < all_bones - 1
    armature.hide_set(True)
    assert count() == 0
    armature.hide_set(False)
    armature.show_in_front = False
    assert count() == 0
    armature.show_in_front = True
    assert count() > 0
    space.overlay.show_bones = False
    assert count() == 0


def test_see_through_shading_masks_lines_only(armature, space):
    for setting in ("WIREFRAME", "SOLID"):
        space.shading.type = setting
        space.shading.show_xray = setting == "SOLID"
        assert all(template.wire for template, _ in silhouettes(space))
    space.shading.show_xray = False
    assert not all(template.wire for template, _ in silhouettes(space))


def unmasked(found, camera):
    """Return the pixels (H, W) that a composited picture reaches, row 0 at the bottom."""
    import gpu

    white = np.ones(SIZE * SIZE * 4, np.float32)
    values = gpu.types.Buffer("FLOAT", white.size, white)
    picture = gpu.types.GPUTexture((SIZE, SIZE), format="RGBA16F", data=values)
    target = gpu.types.GPUOffScreen(SIZE, SIZE, format="RGBA16F")
    with target.bind():
        buffer = gpu.state.active_framebuffer_get()
        buffer.clear(color=(0.0, 0.0, 0.0, 0.0), depth=1.0)
        draw_masks(found, camera.view, camera.projection, SIZE, SIZE)
        screen.composite(picture, masked=True)
        read = buffer.read_color(0, 0, SIZE, SIZE, 4, 0, "FLOAT")
    target.free()
    read.dimensions = SIZE * SIZE * 4
    return np.array(read).reshape(SIZE, SIZE, 4)[..., 3] > 0.5


def test_splats_stay_off_the_bones(armature, space, device):
    target = np.array(armature.matrix_world @ armature.pose.bones[0].center)
    camera = Camera.perspective(target + (4, -9, 3), target, (0, 0, 1), 0.8, SIZE, SIZE, 0.1, 100)
    open_pixels = unmasked(silhouettes(space), camera)
    clip = camera.projection @ camera.view
    inside = 0
    for head, tail in shown(armature):
        for t in np.linspace(0.02, 0.98, 40):
            x, y, _, w = clip @ np.append((1 - t) * head + t * tail, 1)
            column, row = (int((v / w + 1) / 2 * SIZE) for v in (x, y))
            if w > 0 and 0 <= column < SIZE and 0 <= row < SIZE:
                inside += 1
                assert not open_pixels[row, column]
    assert inside > 40 and open_pixels.mean() > 0.7


def test_balls_face_the_eye(device):
    disc = Template(np.float32([(-1, -1, 0), (1, -1, 0), (0, 1, 0)]), faces_eye=True)
    camera = Camera.perspective((3, -4, 2), (0, 0, 0), (0, 0, 1), 0.8, SIZE, SIZE, 0.1, 100)
    flat = np.diag([1, 1, 1, 1]).astype(np.float32)[None]
    turned = facing(flat, camera.view)
    np.testing.assert_allclose(camera.view[:3, :3] @ turned[0, :3, :3], np.eye(3), atol=1e-6)
    covered = ~unmasked([(disc, flat)], camera)
    height = np.ptp(np.flatnonzero(covered.any(axis=1))) / SIZE
    assert height == pytest.approx(2 / (2 * np.sqrt(29) * np.tan(0.4)), rel=0.1)
    assert unmasked([], camera).all()
