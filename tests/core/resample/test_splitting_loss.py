"""Pictures of children along rays."""

import numpy as np
import pytest
import torch

from gaussianimate.core.resample.splitting_loss import (
    Rays,
    alpha_errors,
    diameter_ratios,
    draw_rays,
    ray_alphas,
    splitting_loss,
)


@pytest.fixture
def rays():
    drawn = draw_rays(400, torch.Generator().manual_seed(3))
    return Rays(drawn.foot.double(), drawn.direction.double())


def a_child(rng, count=1):
    child = torch.from_numpy(rng.normal(size=(count, 7)))
    return child[:, :3], (0.3 * child[:, 3:6]).exp(), child[:, 6].sigmoid()


def test_rays_meet_discs_evenly():
    """Chords between uniform points of a sphere have impact parameters uniform over the disc's area."""
    drawn = draw_rays(100_000, torch.Generator().manual_seed(0))
    assert torch.allclose((drawn.foot * drawn.direction).sum(dim=1), torch.zeros(1), atol=1e-4)
    area = (drawn.foot**2).sum(dim=1) / 16
    levels = torch.tensor([0.1, 0.5, 0.9])
    assert torch.allclose(torch.quantile(area, levels), levels, atol=0.01)
    assert drawn.direction.mean(dim=0).abs().max() < 0.01


def test_alpha_is_that_of_the_orthographic_footprint(rng, rays):
    """exp of minus half the squared distance in the metric of the covariance projected along the ray."""
    offsets, deviations, opacities = a_child(rng)
    found = ray_alphas(rays, offsets, deviations, opacities)[:, 0].numpy()
    covariance = np.diag(deviations[0].numpy() ** 2)
    for foot, direction, alpha in zip(rays.foot.numpy(), rays.direction.numpy(), found, strict=True):
        screen = np.linalg.svd(direction[None])[2][1:]
        u = screen @ (foot - offsets[0].numpy())
        exponent = u @ np.linalg.solve(screen @ covariance @ screen.T, u)
        assert alpha == pytest.approx(opacities[0].item() * np.exp(-0.5 * exponent), abs=1e-9)


def test_alpha_is_the_density_where_the_ray_comes_nearest(rng, rays):
    offsets, deviations, opacities = a_child(rng)
    t = torch.linspace(-9, 9, 20_001, dtype=torch.float64)
    points = rays.foot[:20, None] + t[:, None] * rays.direction[:20, None]
    density = torch.exp(-0.5 * (((points - offsets[0]) / deviations[0]) ** 2).sum(dim=-1)).amax(dim=1)
    found = ray_alphas(rays, offsets, deviations, opacities)[:20, 0] / opacities
    assert torch.allclose(found, density, atol=1e-6)


def test_affine_maps_change_no_alpha(rng, rays):
    """So one dictionary in whitened coordinates serves all splats."""
    offsets, deviations, opacities = a_child(rng, 5)
    stretch = torch.tensor([3.0, 1.5, 0.2], dtype=torch.float64)
    direction = rays.direction * stretch
    length = direction.norm(dim=1, keepdim=True)
    foot = rays.foot * stretch
    foot = foot - (foot * direction).sum(dim=1, keepdim=True) / length**2 * direction
    stretched = Rays(foot, direction / length)
    before = ray_alphas(rays, offsets, deviations, opacities)
    after = ray_alphas(stretched, offsets * stretch, deviations * stretch, opacities)
    assert torch.allclose(before, after, atol=1e-9)


def test_a_parent_in_place_of_its_children_is_no_error(rays):
    """Four of five children so faint that they are not there."""
    children = torch.zeros(1, 5, 7, dtype=torch.float64)
    children[:, 1:, 6] = -60
    opacities = torch.tensor([0.5], dtype=torch.float64)
    assert alpha_errors(rays, children, opacities).abs().max() < 1e-12
    axes = torch.tensor([[1.0, 0.5, 0.1]], dtype=torch.float64)
    loss = splitting_loss(rays, children, axes, opacities, 0.002, True)
    assert loss.item() == pytest.approx(0.002)


def test_only_the_largest_child_along_the_longest_axes_counts():
    children = torch.zeros(1, 5, 7)
    children[0, :, 3:6] = torch.log(torch.tensor([[0.5, 0.9, 1.0]]))
    assert diameter_ratios(children, torch.tensor([[1.0, 0.1, 0.1]])).item() == pytest.approx(0.5)
    assert diameter_ratios(children, torch.tensor([[1.0, 1.0, 0.1]])).item() == pytest.approx(0.9)


def test_gradients_are_right(rng, rays):
    children = torch.from_numpy(rng.normal(size=(2, 5, 7)) * 0.4).requires_grad_()
    opacities = torch.tensor([0.3, 0.9], dtype=torch.float64)
    few = Rays(rays.foot[:30], rays.direction[:30])
    axes = torch.tensor([[1.0, 0.5, 0.1]] * 2, dtype=torch.float64)
    assert torch.autograd.gradcheck(
        lambda c: splitting_loss(few, c, axes, opacities, 0.002, True), (children,)
    )
