"""Bones are read as bakes read them; where there is no pose to follow, splats stand at rest."""

import bpy
import numpy as np
import pytest
from drawn_scenes import items, rigged, spaces
from mathutils import Matrix
from scenes import IDENTITY, build, pose

from gaussianimate.gaussianimate_addon.bake import skin_transforms
from gaussianimate.gaussianimate_addon.drawer.poses import pose_reader, read_transforms
from gaussianimate.gaussianimate_addon.modifiers import DEFORM, find_modifier

PLACED = Matrix.LocRotScale((1, 2, 3), Matrix.Rotation(0.7, 3, "Y"), (1, 2, 0.5))


@pytest.mark.parametrize("place", (IDENTITY, PLACED))
@pytest.mark.parametrize("armature_place", (IDENTITY, PLACED))
def test_transforms_are_those_of_bakes(scene, place, armature_place):
    object, armature, _ = build(scene, object_world=place, armature_world=armature_place)
    reader = pose_reader(object)
    for seed in range(3):
        pose(armature, seed)
        object.location.x += 0.1
        bpy.context.view_layer.update()
        depsgraph = bpy.context.view_layer.depsgraph
        expected = skin_transforms(depsgraph, object)
        np.testing.assert_allclose(read_transforms(depsgraph, object, reader), expected, atol=1e-12)
    assert np.abs(expected - np.eye(3, 4)).max() > 0.1


def test_rest_pose_moves_nothing_at_all(scene):
    object, _, _ = build(scene, object_world=PLACED)
    depsgraph = bpy.context.view_layer.depsgraph
    transforms = read_transforms(depsgraph, object, pose_reader(object))
    assert (transforms == np.eye(3, 4)).all()


def test_no_pose_to_follow(scene):
    object, armature, _ = build(scene)
    pose(armature, 1)
    reader, depsgraph = pose_reader(object), bpy.context.view_layer.depsgraph
    object.scale = (0, 1, 1)
    bpy.context.view_layer.update()
    assert read_transforms(depsgraph, object, reader) is None
    object.scale = (1, 1, 1)
    for broken in (object, armature):
        broken.location.x = float("nan")
        bpy.context.view_layer.update()
        assert read_transforms(depsgraph, object, reader) is None
        broken.location.x = 0
    bpy.context.view_layer.update()
    assert read_transforms(depsgraph, object, reader) is not None
    bpy.data.objects.remove(armature)
    assert read_transforms(depsgraph, object, reader) is None


@pytest.mark.parametrize("switch", ("show_viewport", "show_render"))
def test_a_deformer_that_is_switched_off_poses_nothing(drawn, switch):
    object, armature = rigged()
    pose(armature, 1)
    setattr(find_modifier(object, DEFORM), switch, False)
    drawn()
    in_viewport, rendered = items(spaces()[0])[0], items()[0]
    assert (in_viewport.transforms is None) == (switch == "show_viewport")
    assert (rendered.transforms is None) == (switch == "show_render")
