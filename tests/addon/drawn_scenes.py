"""Scenes whose splats the drawer draws."""

import bpy
from rigs import make_capture, make_cloud, make_rig
from scenes import build

from gaussianimate.gaussianimate_addon.capture_object import create_capture_object
from gaussianimate.gaussianimate_addon.drawer import viewport
from gaussianimate.gaussianimate_addon.drawer.display import set_display
from gaussianimate.gaussianimate_addon.point_cloud import cloud_to_point_cloud

DRAWER = viewport.DRAWER


def rigged(name="bar", count=50, **settings):
    object, armature, _ = build(bpy.context.scene, make_cloud(count), **settings)
    object.name = name
    set_display(object, "DRAWER")
    return object, armature


def plain(name, count=20, seed=1):
    object = bpy.data.objects.new(name, cloud_to_point_cloud(make_cloud(count, seed=seed), name))
    bpy.context.scene.collection.objects.link(object)
    set_display(object, "DRAWER")
    return object


def playing():
    cloud = make_cloud(60)
    object = create_capture_object(bpy.context, make_capture(cloud, make_rig(cloud)), cloud, "z")
    set_display(object, "DRAWER")
    return object


def items(space=None):
    return DRAWER.splats.items(bpy.context.view_layer.depsgraph, space)


def spaces():
    screens = bpy.data.screens
    return [a.spaces.active for screen in screens for a in screen.areas if a.type == "VIEW_3D"]
