"""What splitting does to pictures: nothing to speak of at rest, and everything where splats stuck out."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from gaussianimate.core.cloud import GaussianCloud
from gaussianimate.core.deform.deform import deform_cloud
from gaussianimate.core.render.camera import Camera
from gaussianimate.core.render.reference import psnr, rasterise
from gaussianimate.core.resample.resample import ResampleOptions, resample, split_all
from gaussianimate.core.rotations import matrix_to_quaternion

study = SimpleNamespace(**runpy.run_path(str(Path(__file__).parents[3] / "docs" / "resampling.py")))


def picture(cloud, eye=(1.6, -6.2, 1.9), target=(1.75, 0, -0.2), size=(200, 160)):
    camera = Camera.perspective(eye, target, (0, 0, 1), 0.6, *size, 0.1, 100)
    rgba = rasterise([(cloud, None)], camera).rgba
    return rgba[..., :3] + 1 - rgba[..., 3:]


def ball(rng, count, opacity):
    """A ball of coloured discs that cover it several times."""
    normals = rng.normal(size=(count, 3))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    side = np.cross(normals, [0.3, 0.5, 0.8])
    side /= np.linalg.norm(side, axis=1, keepdims=True)
    f32 = np.float32
    return GaussianCloud(
        normals.astype(f32),
        matrix_to_quaternion(np.stack([np.cross(side, normals), side, normals], axis=2)).astype(f32),
        np.tile(np.array([[0.08, 0.06, 0.008]], f32), (count, 1)),
        np.full(count, opacity, f32),
        (1.5 * np.sin(3 * normals))[:, None].astype(f32),
    )


@pytest.mark.parametrize("opacity", [0.3, 0.9, 1.0])
def test_splitting_every_splat_hardly_shows(rng, make, opacity):
    cloud = ball(rng, 2500, opacity)
    skin = make.skin(study.Chain(1.0), cloud.positions)
    fine = split_all(cloud, skin).cloud
    assert len(fine) == 5 * len(cloud)
    eye, target = (0, -5, 1), (0, 0, 0)
    assert psnr(picture(cloud, eye, target), picture(fine, eye, target)) > 35


def test_bent_clouds_come_nearer_to_what_they_should_be(make):
    """The reference is the same cloud in grids of tiny splats, each with the weights of its own place."""
    cloud, field, pose = study.tube(12, 12), study.Chain(0.35), study.pose(2.1, 1.5)
    skin = make.skin(field, cloud.positions)
    many = study.dense(cloud, step=0.4, side=19)
    many = many.take(many.opacities > 1e-4)
    reference = picture(deform_cloud(many, make.skin(field, many.positions), pose))
    posed = psnr(picture(deform_cloud(cloud, skin, pose)), reference)
    for weights in (field, None):
        fine = resample(cloud, skin, pose, ResampleOptions(epsilon=0.03, budget=30), weights)
        assert psnr(picture(deform_cloud(fine.cloud, fine.skin, pose)), reference) > posed + 1.5
    assert psnr(picture(many), picture(cloud)) > posed + 3, "the reference looks like the cloud at rest"
