"""What the drawer shows of splats before and after, and what else it draws of them meanwhile."""

import bpy
import numpy as np
import pytest
from drawn_scenes import DRAWER, items
from resampling import ops, origins, whole
from tubes import PLACE, bent_tube, skin_of, study

from gaussianimate.core.deform.deform import deform_cloud
from gaussianimate.core.render.camera import Camera
from gaussianimate.core.render.reference import psnr, rasterise
from gaussianimate.gaussianimate_addon.bake import posed_cloud
from gaussianimate.gaussianimate_addon.drawer.display import set_display
from gaussianimate.gaussianimate_addon.drawer.offscreen import draw_picture

POSE = study.pose(2.1, 1.5)
FIELD = study.Chain(0.35)
CAMERA = Camera.perspective((1.9, -6.0, 1.8), (1.95, 0.2, -0.3), (0, 0, 1), 0.6, 200, 160, 0.1, 100)


def over_white(rgba):
    return rgba[..., :3] + 1 - rgba[..., 3:]


def drawn_now():
    return over_white(draw_picture(DRAWER.splats.atlas, items(), CAMERA).rgba)


@pytest.fixture
def tube(drawn):
    """A bent tube, and the picture of its dense reference."""
    cloud = study.tube(12, 12)
    object, armature = bent_tube(cloud, FIELD, POSE)
    set_display(object, "DRAWER")
    many = study.dense(cloud, step=0.4, side=19)
    many = many.take(many.opacities > 1e-4)
    exact = deform_cloud(many, skin_of(FIELD, many), POSE)
    return object, armature, over_white(rasterise([(exact, np.array(PLACE))], CAMERA).rgba)


def test_the_picture_comes_nearer_to_a_dense_reference(tube, drawn):
    object, _, reference = tube
    drawn()
    before = drawn_now()
    assert ops.resample(epsilon=0.03, budget=30) == {"FINISHED"}
    assert drawn() == ["read", "build"]
    after = drawn_now()
    assert psnr(after, reference) > psnr(before, reference) + 1.5
    posed = posed_cloud(bpy.context.evaluated_depsgraph_get(), object, "OBJECT")
    matrix = np.array(object.matrix_world, np.float64)
    assert psnr(after, over_white(rasterise([(posed, matrix)], CAMERA).rgba)) > 70, "as core poses them"
    ops.restore_splats()
    assert drawn() == ["read", "build"]
    np.testing.assert_array_equal(drawn_now(), before)


def test_the_overlay_lies_on_the_splats_that_are_split(tube, drawn):
    object, _, _ = tube
    ops.show_bent(epsilon=0.03, budget=30)
    drawn()
    rows = DRAWER.overlay.rows(DRAWER.splats.subjects, DRAWER.splats.atlas)
    np.testing.assert_array_equal(rows, DRAWER.overlay.values)
    ops.resample(epsilon=0.03, budget=30)
    split = np.bincount(origins(object)) > 1
    np.testing.assert_array_equal(rows > 0, split)
    assert 0.1 < split.mean() < 0.6 and whole(object) is not None


def test_an_overlay_of_other_splats_is_not_drawn(tube, drawn):
    object, _, _ = tube
    ops.show_bent(epsilon=0.03)
    object.data.resize(100)
    drawn()
    assert DRAWER.overlay.rows(DRAWER.splats.subjects, DRAWER.splats.atlas) is None
