"""Where the drawer shows splats: what viewports hide, instances, scenes of their own."""

import bpy
import pytest
from drawn_scenes import DRAWER, items, plain, rigged, spaces
from mathutils import Matrix

from gaussianimate.gaussianimate_addon.drawer import scene
from gaussianimate.gaussianimate_addon.drawer.display import drawn_objects


def test_what_viewports_hide(drawn):
    object = plain("plain")
    space = spaces()[0]
    drawn()
    assert len(items(space)) == 1
    object.hide_set(True)
    drawn()
    assert items(space) == [] and len(items()) == 1, "renders mind no eye"
    object.hide_set(False)
    space.show_object_viewport_pointcloud = False
    drawn()
    assert items(space) == []
    space.show_object_viewport_pointcloud = True
    object.hide_render = True
    drawn()
    assert len(items(space)) == 1 and items() == []


def test_instances_of_collections(drawn):
    object = plain("plain")
    holder = bpy.data.collections.new("holder")
    bpy.context.scene.collection.children.link(holder)
    holder.objects.link(object)
    bpy.context.scene.collection.objects.unlink(object)
    empties = [bpy.data.objects.new(name, None) for name in "ab"]
    for i, empty in enumerate(empties):
        empty.instance_type, empty.instance_collection, empty.location = "COLLECTION", holder, (i + 1, 0, 0)
        bpy.context.scene.collection.objects.link(empty)
    drawn()
    space = spaces()[0]
    assert sorted(item.matrix[0, 3] for item in items(space)) == [0, 1, 2]
    empties[0].hide_set(True)
    bpy.context.view_layer.layer_collection.children["holder"].exclude = True
    drawn()
    assert [item.matrix[0, 3] for item in items(space)] == [2]
    bpy.data.objects.remove(empties[1])
    drawn()
    assert items(space) == []


def test_instances_of_geometry_nodes(drawn):
    object = plain("plain")
    group = bpy.data.node_groups.new("instances", "GeometryNodeTree")
    group.interface.new_socket("Geometry", in_out="OUTPUT", socket_type="NodeSocketGeometry")
    info, out = group.nodes.new("GeometryNodeObjectInfo"), group.nodes.new("NodeGroupOutput")
    info.inputs["Object"].default_value, info.inputs["As Instance"].default_value = object, True
    group.links.new(info.outputs["Geometry"], out.inputs[0])
    host = bpy.data.objects.new("host", bpy.data.meshes.new("host"))
    host.location = (5, 0, 0)
    bpy.context.scene.collection.objects.link(host)
    drawn()
    host.modifiers.new("instances", "NODES").node_group = group
    drawn()
    assert sorted(item.matrix[0, 3] for item in items(spaces()[0])) == [0, 5]


def test_scenes_have_their_own_objects(drawn):
    shared, own = plain("shared"), plain("own")
    other = bpy.data.scenes.new("other")
    other.collection.objects.link(shared)
    drawn()
    assert {s.name for s in DRAWER.splats.subjects} == {"shared", "own"}
    splats = scene.SceneSplats()
    layer = other.view_layers[0]
    layer.update()
    splats.update(drawn_objects, layer.depsgraph, "exact")
    assert [s.name for s in splats.subjects] == ["shared"]
    assert len(splats.items(layer.depsgraph)) == 1 and own.name not in other.objects


@pytest.mark.parametrize("matrix", (Matrix.Diagonal((0, 0, 0, 1)), Matrix.Translation((float("nan"), 0, 0))))
def test_objects_without_a_place_are_not_drawn(drawn, matrix):
    object, _ = rigged()
    object.matrix_world = matrix
    drawn()
    assert items() == [] and DRAWER.splats.atlas is not None


def test_no_splats_at_all(drawn):
    from pictures import perspective

    from gaussianimate.gaussianimate_addon.drawer.offscreen import draw_picture

    plain("empty", count=0)
    drawn()
    assert not draw_picture(DRAWER.splats.atlas, items(), perspective()).rgba.any()
