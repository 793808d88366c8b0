"""The torch twin agrees with numpy."""

import subprocess
import sys
from importlib import import_module

import numpy as np
import pytest

from gaussianimate.core.deform import torch_deform
from gaussianimate.core.deform.deform import deform_cloud, deform_points, jacobians
from gaussianimate.core.errors import MissingDependencyError
from gaussianimate.core.skinning.skin import Skin, make_skin


def test_missing_torch_says_how_to_get_it(rng, make, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    cloud = make.cloud(rng, 3, dtype=np.float32)
    skin = make_skin(cloud.positions, np.zeros((3, 1)), np.ones((3, 1)))
    with pytest.raises(MissingDependencyError, match="pip install torch"):
        torch_deform.deform_cloud(cloud, skin, make.transforms(rng, 1))


def test_importing_the_deformation_loads_numpy_only():
    code = (
        "import sys; import gaussianimate.core.deform.deform, gaussianimate.core.deform.transforms, "
        "gaussianimate.core.deform.elastic, gaussianimate.core.skinning.skin, "
        "gaussianimate.core.skinning.quantize; "
        "sys.exit(any(name in sys.modules for name in ('torch', 'scipy', 'trimesh', 'bpy')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_single_precision_torch_agrees_with_double_numpy(rng, make):
    torch = import_module("torch")
    count, bones = 100_000, 12
    p, transforms = rng.normal(size=(count, 3)), make.transforms(rng, bones)
    indices = rng.integers(-1, bones, (count, 4))
    skin = make_skin(p, indices, rng.random((count, 4)), rng.normal(size=(count, 4, 3)))
    double = Skin(skin.indices, skin.weights.astype(np.float64), skin.gradients.astype(np.float64))
    arguments = [torch.as_tensor(a) for a in (p, skin.indices, skin.weights, skin.gradients, transforms)]
    arguments[0] = arguments[0].float()
    displacement, r = torch_deform.blend(*arguments)
    # Reference on the same single-precision positions.
    single = p.astype(np.float32).astype(np.float64)
    truth = jacobians(single, double, transforms)
    moved = deform_points(single, double, transforms)
    diagonal = np.linalg.norm(np.ptp(p, axis=0))
    assert np.abs(p + displacement.numpy() - moved).max() < 1e-5 * diagonal
    assert np.abs(r.numpy() - truth).max() < 1e-4


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_whole_clouds_agree(rng, make, dtype):
    torch = import_module("torch")
    kind = np.dtype(dtype).type
    cloud, transforms = make.cloud(rng, 500, dtype=kind), make.transforms(rng, 4, angle=1)
    skin = make.field(rng, 4).skin(cloud.positions.astype(np.float64), kind)
    skin.weights[0], skin.gradients[0] = [1, 0, 0, 0], 0
    transforms[0] = np.eye(3, 4)
    eta = rng.random(500).astype(kind)
    a = deform_cloud(cloud, skin, transforms, elastic=eta)
    b = torch_deform.deform_cloud(
        cloud, skin, transforms, elastic=eta, dtype=getattr(torch, dtype), chunk=200
    )
    tolerance = 2e-4 if dtype == "float32" else 1e-9
    for name in ("positions", "scales", "sh", "opacities"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), atol=tolerance)
    found, expected = make.covariance(b.rotations, b.scales), make.covariance(a.rotations, a.scales)
    np.testing.assert_allclose(found, expected, atol=tolerance * np.abs(expected).max())
    np.testing.assert_array_equal(b.rotations[0], cloud.rotations[0])


def test_gradients_flow_to_the_bones(rng, make):
    torch = import_module("torch")
    p = rng.normal(size=(30, 3))
    skin = make.field(rng, 3).skin(p)
    bones = torch.as_tensor(make.transforms(rng, 3)).requires_grad_()
    tensors = [torch.as_tensor(np.array(a)) for a in (p, skin.indices, skin.weights, skin.gradients)]
    assert torch.autograd.gradcheck(lambda t: torch_deform.blend(*tensors, t), (bones,))
