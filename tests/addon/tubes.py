"""The tube of docs/resampling.py in a scene: large splats whose weights change fast, twisted and bent."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace

import bpy
import numpy as np
from drawn_weights import select
from mathutils import Matrix

from gaussianimate.core.skinning.skin import Skin
from gaussianimate.gaussianimate_addon.armature import edit_mode
from gaussianimate.gaussianimate_addon.deformer import add_deformer
from gaussianimate.gaussianimate_addon.point_cloud import cloud_to_point_cloud
from gaussianimate.gaussianimate_addon.skin_attributes import write_skin
from gaussianimate.gaussianimate_addon.weights.numbering import number_bones

study = SimpleNamespace(**runpy.run_path(str(Path(__file__).parents[2] / "docs" / "resampling.py")))
PLACE = Matrix.Translation((0.3, 0.2, -0.1)) @ Matrix.Rotation(0.2, 4, "Z")


def skin_of(field, cloud):
    indices, weights, gradients = field(cloud.positions.astype(float), np.arange(len(cloud)))
    return Skin(indices, weights.astype(np.float32), gradients.astype(np.float32))


def tube_object(cloud, name="tube"):
    """Add splats to the scene."""
    object = bpy.data.objects.new(name, cloud_to_point_cloud(cloud, name))
    bpy.context.scene.collection.objects.link(object)
    object.matrix_world = PLACE
    return object


def bent_tube(cloud, field, transforms):
    """Return the tube bound to three bones that are posed by these transforms (3, 3, 4)."""
    object, data = tube_object(cloud), bpy.data.armatures.new("bones")
    armature = bpy.data.objects.new("bones", data)
    bpy.context.scene.collection.objects.link(armature)
    armature.matrix_world = PLACE
    bpy.context.view_layer.update()
    with edit_mode(bpy.context, armature):
        for number, (head, tail) in enumerate(((0, 1.3), (1.3, 2.7), (2.7, 4))):
            bone = data.edit_bones.new(f"bone {number}")
            bone.head, bone.tail = (head, 0, 0), (tail, 0, 0)
    number_bones(armature)
    write_skin(object.data, skin_of(field, cloud))
    add_deformer(object, armature)
    for number, bone in enumerate(armature.pose.bones):
        bone.matrix = Matrix([*transforms[number].tolist(), (0, 0, 0, 1)]) @ bone.bone.matrix_local
    bpy.context.view_layer.update()
    select(object)
    return object, armature
