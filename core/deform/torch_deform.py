"""The gradient rig in torch: the equations of `deform.py`, on any device, differentiable, float32 or float64.

torch is imported on the first call. Tensors follow the arrays of the numpy functions in shape and meaning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..cloud import GaussianCloud
from ..errors import MissingDependencyError
from ..rotations import matrix_to_quaternion
from ..skinning.skin import Skin
from .blend import check_fit
from .deform import diagonal
from .sh import band_samples, evaluate_band
from .svd3 import CUBE_ROTATIONS

if TYPE_CHECKING:
    from torch import Tensor

Floats = NDArray[np.floating]


def import_torch() -> Any:
    """Return the torch module.

    Raises
    ------
    MissingDependencyError : torch is not installed
    """
    try:
        import torch
    except ImportError:
        raise MissingDependencyError(
            "Deforming with torch needs torch; install it with 'python -m pip install torch'"
        ) from None
    return torch


def blend(
    positions: Tensor,
    indices: Tensor,
    weights: Tensor,
    gradients: Tensor,
    transforms: Tensor,
    elastic: float | Tensor = 1.0,
) -> tuple[Tensor, Tensor]:
    """Return displacements p' - p (N, 3) and Jacobians R (N, 3, 3), differentiable in all but the indices.

    Parameters
    ----------
    positions : (N, 3)
    indices : (N, K) integers, -1 for the static bone
    weights : (N, K) rows sum to 1
    gradients : (N, K, 3) sum to 0 over K
    transforms : (B, 3, 4)
    elastic : eta, scalar or (N,)
    """
    torch = import_torch()
    eye = torch.eye(3, dtype=positions.dtype, device=positions.device)
    centre = positions.detach().double().mean(dim=0) if len(positions) else transforms.new_zeros(3)
    linear = transforms[:, :, :3] - eye.to(transforms)
    offsets = linear @ centre.to(transforms) + transforms[:, :, 3]
    moves = torch.cat([linear, offsets[..., None]], dim=-1)
    moves = torch.cat([moves, moves.new_zeros(1, 3, 4)]).to(positions.dtype)
    chosen = moves[torch.where(indices < 0, len(transforms), indices).long()]  # (N, K, 3, 4)
    local = positions - centre.to(positions.dtype)
    influences = torch.einsum("nkab,nb->nka", chosen[..., :3], local) + chosen[..., 3]  # T_j p - p
    displacement = torch.einsum("nk,nka->na", weights, influences)
    rigid = eye + torch.einsum("nk,nkab->nab", weights, chosen[..., :3])
    extra = torch.einsum("nka,nkb->nab", influences - displacement[:, None], gradients)
    eta = torch.as_tensor(elastic, dtype=positions.dtype, device=positions.device)
    return displacement, rigid + eta[..., None, None] * extra


def factor(jacobians: Tensor, rotations: Tensor, scales: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Factor R Sigma R^T into axes (N, 3, 3) and scales (N, 3), and return polar(R) (N, 3, 3).

    Parameters
    ----------
    jacobians : (N, 3, 3)
    rotations : (N, 4) unit wxyz
    scales : (N, 3)

    Notes
    -----
    Singular values are found in double precision, and axes named, as in `svd3.covariance_axes`.
    """
    torch = import_torch()
    r, frames = jacobians.double(), _rotation_matrices(rotations.double())
    left, _, right = torch.linalg.svd(r)
    mirror = torch.ones_like(scales, dtype=r.dtype)
    mirror[:, 2] = torch.linalg.det(left @ right)
    turns = left * mirror[:, None, :] @ right
    axes, sigma, _ = torch.linalg.svd(r @ frames * scales.double()[:, None, :])
    axes = axes * torch.linalg.det(axes).sign()[:, None, None]
    cube = torch.as_tensor(CUBE_ROTATIONS, dtype=r.dtype, device=r.device)
    overlap = (axes.mT @ turns @ frames).reshape(-1, 9)
    best = cube[torch.argmax(overlap @ cube.reshape(24, 9).T, dim=1)]
    named = torch.einsum("nab,na->nb", best, sigma).abs()
    return (axes @ best).to(jacobians), named.to(jacobians), turns.to(jacobians)


def rotate_sh(sh: Tensor, rotations: Tensor) -> Tensor:
    """Rotate spherical harmonics (N, (degree + 1)^2, 3) by (N, 3, 3); see `sh.rotate_sh`."""
    torch = import_torch()
    bands = [sh[:, :1]]
    for degree in range(1, round(sh.shape[1] ** 0.5)):
        directions, inverse = (torch.as_tensor(a).to(sh) for a in band_samples(degree))
        turned = directions @ rotations
        values = torch.stack(evaluate_band(degree, *turned.unbind(-1)), dim=-1)
        bands.append(inverse @ (values @ sh[:, degree**2 : (degree + 1) ** 2]))
    return torch.cat(bands, dim=1)


def deform_cloud(
    cloud: GaussianCloud,
    skin: Skin,
    transforms: Floats,
    elastic: float | Floats = 1.0,
    rotate_colours: bool = True,
    device: str = "cpu",
    dtype: Any = None,
    chunk: int = 65536,
) -> GaussianCloud:
    """Return the posed cloud as `deform.deform_cloud` does, computed by torch.

    Parameters
    ----------
    cloud, skin, transforms, elastic : as for `deform.deform_cloud`
    rotate_colours : turn spherical harmonics with the splats
    device : torch device
    dtype : torch.float32 (default) or torch.float64
    chunk : splats worked on at once

    Raises
    ------
    MissingDependencyError : torch is not installed
    RigError : skin and cloud, or skin and transforms, do not fit
    """
    torch = import_torch()
    dtype = dtype or torch.float32
    check_fit(len(cloud), skin, len(transforms))
    bones = torch.as_tensor(np.asarray(transforms, dtype=np.float64), device=device)
    eta = np.broadcast_to(np.asarray(elastic), (len(cloud),))
    floor = 1e-7 * diagonal(cloud.positions)
    posed = GaussianCloud(**{name: getattr(cloud, name).copy() for name in cloud.__dataclass_fields__})
    for start in range(0, len(cloud), chunk):
        rows = slice(start, start + chunk)

        def load(array: NDArray, rows: slice = rows) -> Tensor:
            return torch.tensor(array[rows], device=device).to(dtype)

        indices = torch.tensor(skin.indices[rows], device=device)
        moved, r = blend(
            load(cloud.positions), indices, load(skin.weights), load(skin.gradients), bones, load(eta)
        )
        axes, scales, turns = factor(r, load(cloud.rotations), load(cloud.scales))
        colours = load(cloud.sh)
        if rotate_colours:
            colours = rotate_sh(colours, turns)
        tolerance = 16 * torch.finfo(dtype).eps
        off = (r - torch.eye(3, dtype=dtype, device=device)).abs().amax(dim=(1, 2))
        new = (off > tolerance).cpu().numpy()
        old = cloud.rotations[rows][new]
        q = matrix_to_quaternion(axes.cpu().numpy()[new])
        thin = np.minimum(cloud.scales[rows][new], floor)
        posed.positions[rows] += moved.cpu().numpy()
        posed.rotations[rows][new] = np.where(((q * old).sum(axis=1) < 0)[:, None], -q, q)
        posed.scales[rows][new] = np.maximum(scales.cpu().numpy()[new], thin)
        posed.sh[rows][new] = colours.cpu().numpy()[new]
    return posed


def _rotation_matrices(quaternions: Tensor) -> Tensor:
    torch = import_torch()
    w, x, y, z = (quaternions / quaternions.norm(dim=-1, keepdim=True)).unbind(-1)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return torch.stack([torch.stack(row, dim=-1) for row in rows], dim=-2)
