"""Small views of small clouds, drawn on the GPU and by the reference rasteriser."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from rigs import make_cloud, make_rig

from gaussianimate.core.deform.deform import deform_cloud
from gaussianimate.core.render.camera import Camera
from gaussianimate.core.render.reference import psnr, rasterise
from gaussianimate.core.rotations import axis_angle_to_quaternion, quaternion_to_matrix
from gaussianimate.core.skinning.quantize import pack, unpack
from gaussianimate.core.skinning.skin import make_skin
from gaussianimate.gaussianimate_addon.drawer.atlas import Source, build_atlas
from gaussianimate.gaussianimate_addon.drawer.draw import Item, Shading
from gaussianimate.gaussianimate_addon.drawer.offscreen import draw_picture

WIDTH, HEIGHT = 96, 64
EYE, TARGET, UP = np.array([-0.3, -1.5, 0.8]), np.array([1.1, 0.0, 0.0]), (0.0, 0.0, 1.0)
IDENTITY = np.eye(4)
LAYOUTS = ("exact", "compact", "paper10")


def perspective(eye=EYE, target=TARGET, up=UP, fov=0.7, near=0.05, far=100.0):
    return Camera.perspective(eye, target, up, fov, WIDTH, HEIGHT, near, far)


def orthographic(eye=EYE, target=TARGET, up=UP, span=1.3, near=0.05, far=100.0):
    return Camera.orthographic(eye, target, up, span, WIDTH, HEIGHT, near, far)


def shifted(x=0.35, y=-0.2):
    """Return a perspective camera whose lens is shifted, as Blender's shift_x and shift_y do."""
    camera = perspective()
    projection = camera.projection.copy()
    projection[:2, 2] = x, y
    return replace(camera, projection=projection)


def affine(linear=None, translation=(0, 0, 0)):
    matrix = np.eye(4)
    matrix[:3, :3] = np.eye(3) if linear is None else linear
    matrix[:3, 3] = translation
    return matrix


def rotation(axis, angle):
    axis = np.asarray(axis, float) / np.linalg.norm(axis)
    return quaternion_to_matrix(axis_angle_to_quaternion(axis, np.asarray(angle)))


def about(matrix, centre=TARGET):
    """Return a linear map (3, 3) applied about a point that stays."""
    return affine(matrix, centre - matrix @ centre)


TURN = rotation((1, 2, -0.5), 0.9)
MATRICES = {
    "identity": IDENTITY,
    "turned": about(TURN),
    "stretched": about(TURN @ np.diag([0.6, 1.7, 1.1])),
    "sheared": about(TURN @ np.array([[1, 0.6, 0], [0, 1, -0.4], [0, 0, 0.8]])),
    "mirrored": about(TURN @ np.diag([-0.7, 1.2, 1.0])),
}


def rigged(count=250, degree=3, influences=3, seed=0, joints=3):
    """Return a cloud, a skin of it with that many influences and several poses of its bones."""
    cloud = make_cloud(count, joints=joints, degree=degree, seed=seed)
    cloud = replace(cloud, scales=2 * cloud.scales)  # to fill the picture
    rig = make_rig(cloud, joints=joints, influences=influences, seed=seed)
    skin = make_skin(rig.rest, rig.indices, rig.weights, bone_count=joints)
    return cloud, skin, rig.bone_transforms


def stored(skin, layout):
    """Return the skin as a layout stores it, by core's own unpacking."""
    return skin if layout == "exact" else unpack(pack(skin, layout))


def draw(cloud, camera, matrix=IDENTITY, skin=None, transforms=None, layout="exact", elastic=1.0, **shading):
    """Return the picture (H, W, 4) that the GPU draws of one object."""
    atlas = build_atlas([Source(cloud, skin)], layout)
    item = Item(0, matrix, transforms, elastic)
    return draw_picture(atlas, [item], camera, Shading(**shading)).rgba


def reference(cloud, camera, matrix=IDENTITY, linear=False):
    return rasterise([(cloud, matrix)], camera, linear=linear).rgba


def baked(cloud, skin, transforms, elastic=1.0, layout="exact"):
    """Return the posed cloud as core bakes it with the skin as a layout stores it."""
    return deform_cloud(cloud, stored(skin, layout), transforms, elastic)


def in_double(cloud):
    """Return the cloud in double precision, whose baking rounds nothing away."""
    return type(cloud)(*(getattr(cloud, name).astype(np.float64) for name in cloud.__dataclass_fields__))


def assert_same_picture(drawn, expected, decibels):
    """Both show something, are finite, and differ by less noise than said."""
    assert np.isfinite(drawn).all()
    assert expected[..., 3].max() > 0.05, "nothing to compare"
    assert expected[..., 3].max() <= 1 + 1e-9
    quality = psnr(drawn, expected)
    assert quality > decibels, f"{quality:.1f} dB"
