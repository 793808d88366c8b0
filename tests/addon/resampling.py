"""A rigged bar of splats large enough to be bent, and what there is to say about its parts."""

from __future__ import annotations

from dataclasses import replace

import bpy
import numpy as np
from drawn_weights import select
from rigs import make_cloud
from scenes import build, pose

from gaussianimate.gaussianimate_addon.attributes import read_attribute
from gaussianimate.gaussianimate_addon.resampling.whole import DEPTH, ORIGIN, whole_of

ops = bpy.ops.gaussianimate
EPSILON = 0.06


def large(cloud, times=4):
    """Return the cloud with its splats so many times as large, and opaque enough to be split."""
    return replace(cloud, scales=cloud.scales * np.float32(times), opacities=0.3 + 0.7 * cloud.opacities)


def bent_bar(scene, count=200, **places):
    """Return splats and armature of a posed bar, the splats active."""
    object, armature, _ = build(scene, large(make_cloud(count)), **places)
    pose(armature, 1)
    select(object)
    return object, armature


def keyed_bar(scene, angles):
    """Return a bar at rest whose second joint turns, radians by frame."""
    object, armature = bent_bar(scene)
    for bone in armature.pose.bones:
        bone.matrix_basis.identity()
    bone = armature.pose.bones["joint_1"]
    bone.rotation_mode = "XYZ"
    for frame, angle in angles.items():
        bone.rotation_euler = (0, 0, angle)
        bone.keyframe_insert("rotation_euler", frame=frame)
    return object, armature


def origins(object):
    return read_attribute(object.data, ORIGIN)


def depths(object):
    return read_attribute(object.data, DEPTH)


def whole(object):
    return whole_of(object.data)


def values(data):
    """Return all attributes by name, as arrays."""
    from gaussianimate.gaussianimate_addon.resampling.carry import read_values

    return {attribute.name: read_values(attribute) for attribute in data.attributes}


def assert_same_values(one, other):
    assert one.keys() == other.keys()
    for name, found in one.items():
        np.testing.assert_array_equal(found, other[name], err_msg=name)


def finished(steps):
    """Return what a generator returns."""
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            return stop.value
