"""How much five children differ from their parent: pictures along rays, and the size of the largest.

Everything is in coordinates in which the parent is the unit sphere N(0, I). Rays run from one point of the
sphere of radius 4 to another, both uniform: directions are uniform, and the place where a ray comes nearest
to the centre is uniform over the disc of radius 4 across it. So the mean over rays is the mean over all
views from afar. Along the ray a + t d a Gaussian contributes

    alpha = o exp(-m^2 / 2),  m^2 = |a'|^2 - (a'.d')^2 / |d'|^2,  a' = (a - x) / c,  d' = d / c,

its density where it is nearest in its own metric, which is the footprint of 3DGS (Kerbl et al. 2023) seen
orthographically. Children share one colour, so that 1 - prod(1 - alpha) does not ask for their order.

A child is (7,) numbers: offset x, log c of its standard deviations along the parent's axes, logit of o.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

RADIUS = 4.0


@dataclass(frozen=True)
class Rays:
    """R rays by the point nearest to the origin and the direction, both (R, 3)."""

    foot: Tensor
    direction: Tensor


def draw_rays(count: int, generator: torch.Generator) -> Rays:
    """Return rays between points that are uniform on the sphere of radius 4."""
    ends = torch.randn(2, count, 3, generator=generator)
    ends = RADIUS * ends / ends.norm(dim=-1, keepdim=True)
    direction = ends[1] - ends[0]
    direction = direction / direction.norm(dim=-1, keepdim=True).clamp_min(1e-6)
    foot = ends[0] - (ends[0] * direction).sum(dim=-1, keepdim=True) * direction
    return Rays(foot, direction)


def ray_alphas(rays: Rays, offsets: Tensor, deviations: Tensor, opacities: Tensor) -> Tensor:
    """Return what each of C children contributes to each ray.

    Parameters
    ----------
    offsets, deviations : (..., C, 3); opacities : (..., C)

    Returns
    -------
    (R, ..., C)

    Notes
    -----
    The three products under m^2 are linear in (1 / c^2, x / c^2), so that matrix products of rays by children
    do nearly all the work.
    """
    foot, direction = rays.foot, rays.direction
    place = offsets.reshape(-1, 3)
    precision = deviations.reshape(-1, 3) ** -2
    weighed = torch.cat([precision, place * precision], dim=1).T  # (6, C)
    constant = (place * place * precision).sum(dim=1)
    aa = torch.cat([foot * foot, -2 * foot], dim=1) @ weighed + constant
    ad = torch.cat([foot * direction, -direction], dim=1) @ weighed
    dd = (direction * direction) @ precision.T
    alphas = torch.exp(-0.5 * (aa - ad * ad / dd).clamp_min(0)) * opacities.reshape(-1)
    return alphas.reshape(len(foot), *opacities.shape)


def decode(children: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return offsets (..., 3), deviations (..., 3) and opacities (...,) of children (..., 7)."""
    return children[..., :3], children[..., 3:6].exp(), children[..., 6].sigmoid()


def alpha_errors(rays: Rays, children: Tensor, opacities: Tensor) -> Tensor:
    """Return the parent's alpha less that of its children, (R, E), of children (E, C, 7)."""
    parent = torch.exp(-0.5 * (rays.foot**2).sum(dim=1))[:, None] * opacities
    return parent - 1 + (1 - ray_alphas(rays, *decode(children))).prod(dim=-1)


def diameter_ratios(children: Tensor, axes: Tensor) -> Tensor:
    """Return the largest child diameter over the parent's, (E,).

    axes : (E, 3) the parent's standard deviations relative to its largest
    """
    return (children[..., 3:6].exp() * axes[:, None]).amax(dim=(-1, -2))


def splitting_loss(
    rays: Rays, children: Tensor, axes: Tensor, opacities: Tensor, conditioning: float, relative: bool
) -> Tensor:
    """Return the loss (E,): mean squared error of alpha, plus ``conditioning`` times the largest diameter.

    relative : measure the error against the parent's opacity (equal at 0.5); without this faint parents save
        diameter by letting children vanish
    """
    rendering = (alpha_errors(rays, children, opacities) ** 2).mean(dim=0)
    if relative:
        rendering = rendering * (0.5 / opacities) ** 2
    return rendering + conditioning * diameter_ratios(children, axes)
