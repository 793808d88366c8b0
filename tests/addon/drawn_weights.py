"""A bar of splats and an armature built by hand, for weights that are drawn."""

from __future__ import annotations

import bpy
import numpy as np
from mathutils import Matrix
from rigs import make_cloud

from gaussianimate.gaussianimate_addon.armature import edit_mode
from gaussianimate.gaussianimate_addon.point_cloud import cloud_to_point_cloud

PLACE = Matrix.Translation((2, -1, 0.5)) @ Matrix.Rotation(0.7, 4, "Z")
BONES = ("hip", "arm.L", "arm.R")


def add_splats(scene, count=400, place=PLACE, name="bar", cloud=None):
    """Return a bar of splats along its X from 0 to 3 (or a cloud), selected and active."""
    object = bpy.data.objects.new(name, cloud_to_point_cloud(cloud or make_cloud(count), name))
    scene.collection.objects.link(object)
    object.matrix_world = place
    select(object)
    return object


def add_armature(scene, place=PLACE, name="hand made"):
    """Return an armature of three deform bones along X and a control that deforms nothing."""
    data = bpy.data.armatures.new(name)
    armature = bpy.data.objects.new(name, data)
    scene.collection.objects.link(armature)
    armature.matrix_world = place @ Matrix.Scale(2, 4)
    bpy.context.view_layer.update()
    with edit_mode(bpy.context, armature):
        control = data.edit_bones.new("control")
        control.head, control.tail = (0, 0, -1), (0, 0, -0.5)
        for k, bone in enumerate(BONES):
            made = data.edit_bones.new(bone)
            made.head, made.tail = (k / 2, 0, 0), ((k + 1) / 2, 0, 0)  # the armature is twice as large
            made.head_radius = made.tail_radius = 0.15
            made.envelope_distance = 0.1
            made.parent = data.edit_bones[BONES[k - 1]] if k else control
    data.bones["control"].use_deform = False
    return armature


def select(*objects):
    """Select exactly these, the last one active."""
    for object in bpy.context.view_layer.objects:
        object.select_set(object in objects)
    bpy.context.view_layer.objects.active = objects[-1]
    bpy.context.view_layer.update()


def dense(skin, count):
    """Return the weights (N, count) of all bones; the static bone's are left out."""
    found = np.zeros((len(skin.indices), count + 1))
    for bones, weights in zip(skin.indices.T, skin.weights.T, strict=True):
        np.add.at(found, (np.arange(len(bones)), bones), weights)
    return found[:, :count]


def dense_gradients(skin, count):
    """Return the gradients (N, count, 3) of all bones' weights."""
    found = np.zeros((len(skin.indices), count + 1, 3))
    for bones, gradients in zip(skin.indices.T, np.moveaxis(skin.gradients, 1, 0), strict=True):
        np.add.at(found, (np.arange(len(bones)), bones), gradients)
    return found[:, :count]
