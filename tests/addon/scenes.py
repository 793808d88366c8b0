"""Objects in a scene: splats bound to an armature, posed at random."""

import bpy
import numpy as np
from mathutils import Euler, Matrix
from rigs import make_cloud, make_rig, make_skin_of

from gaussianimate.gaussianimate_addon.armature import rig_to_armature
from gaussianimate.gaussianimate_addon.deformer import add_deformer
from gaussianimate.gaussianimate_addon.point_cloud import cloud_to_point_cloud
from gaussianimate.gaussianimate_addon.skin_attributes import write_skin

IDENTITY = Matrix.Identity(4)


def build(scene, cloud=None, rig=None, skin=None, object_world=IDENTITY, armature_world=IDENTITY):
    """Return (object, armature, skin) bound to each other at these places."""
    cloud = cloud or make_cloud(300)
    rig = rig or make_rig(cloud)
    skin = skin or make_skin_of(rig)
    object = bpy.data.objects.new("bar", cloud_to_point_cloud(cloud, "bar"))
    scene.collection.objects.link(object)
    armature = rig_to_armature(bpy.context, rig, "rig")
    object.matrix_world, armature.matrix_world = object_world, armature_world
    write_skin(object.data, skin)
    bpy.context.view_layer.update()
    add_deformer(object, armature)
    bpy.context.view_layer.update()
    return object, armature, skin


def pose(armature, seed, strength=0.5):
    """Turn, shift and stretch every bone at random."""
    rng = np.random.default_rng(seed)
    for bone in armature.pose.bones:
        turn = Euler(rng.normal(scale=strength, size=3)).to_matrix().to_4x4()
        stretch = Matrix.Diagonal((*np.exp(rng.normal(scale=0.2 * strength, size=3)), 1))
        bone.matrix_basis = Matrix.Translation(rng.normal(scale=0.3 * strength, size=3)) @ turn @ stretch
    bpy.context.view_layer.update()


def world(object):
    return np.array(object.matrix_world, np.float64)


def reopened(path, *names, link=True):
    """Save the file, begin an empty one and link (or append) objects of the saved one into its scene."""
    bpy.ops.wm.save_as_mainfile(filepath=path)
    bpy.ops.wm.read_homefile(app_template="", use_empty=True)
    with bpy.data.libraries.load(path, link=link) as (_, wanted):
        wanted.objects = list(names)
    for object in wanted.objects:
        bpy.context.scene.collection.objects.link(object)
    return wanted.objects
