"""Products in parts."""

import numpy as np
import pytest

from gaussianimate.core import thin_product as module
from gaussianimate.core.thin_product import thin_product


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("most", [1, 50, 1000, 10**9])
def test_parts_make_up_the_product(monkeypatch, dtype, most):
    rng = np.random.default_rng(0)
    monkeypatch.setattr(module, "MOST", most)
    matrix, points = rng.normal(size=(4, 3)).astype(dtype), rng.normal(size=(101, 3)).astype(dtype)
    for columns in (points.T, np.ascontiguousarray(points.T), points.T[:, ::2], points.T[:, :0]):
        found = thin_product(matrix, columns)
        assert found.dtype == dtype and found.shape == (4, columns.shape[1])
        np.testing.assert_allclose(found, matrix @ columns, rtol=1e-5, atol=1e-6)
