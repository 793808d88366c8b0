"""Quantiles of quadratic forms of normal vectors."""

import numpy as np
import pytest

from gaussianimate.core.resample import quantiles


def symmetric_forms(rng, count):
    forms = rng.normal(size=(count, 3, 3, 3))
    return forms + np.swapaxes(forms, 1, 3)


def values(forms, z):
    """|e| (N, S) of forms (N, a, k, b) at z (S, 3)."""
    return np.linalg.norm(0.5 * np.einsum("sa,nakb,sb->nsk", z, forms, z), axis=2)


def test_eigenvalues_are_those_of_lapack(rng):
    a = rng.normal(size=(500, 3, 3))
    a = a + np.swapaxes(a, 1, 2)
    a[0], a[1], a[2] = 0, np.eye(3), np.diag([1, 0, 0])
    assert np.allclose(quantiles.eigenvalues(a), np.linalg.eigvalsh(a)[:, ::-1], atol=1e-6)


def test_the_root_of_the_sum_of_squares_bounds_the_error_everywhere(rng):
    forms = symmetric_forms(rng, 300)
    squared = np.einsum("nakb,nckb->nac", forms, forms)
    root_values, root_axes = np.linalg.eigh(squared)
    z = rng.normal(size=(2000, 3))
    along = np.einsum("sa,nai->nsi", z, root_axes)
    bound = 0.5 * (along**2 * np.sqrt(root_values)[:, None]).sum(axis=2)
    assert (values(forms, z) <= bound * (1 + 1e-9)).all()
    spreads, _ = quantiles.spread(forms)
    assert np.allclose(spreads, np.sqrt(root_values)[:, ::-1], rtol=1e-5)


def test_mean_square_is_exact(rng):
    forms = symmetric_forms(rng, 4)
    z = rng.normal(size=(400_000, 3))
    _, mean_square = quantiles.spread(forms)
    assert np.allclose((values(forms, z) ** 2).mean(axis=1), mean_square, rtol=0.03)


def test_chi_square_corners():
    zero, one = np.zeros(1), np.ones(1)
    found = [quantiles.chi2_quantile(*pair)[0] for pair in ((zero, zero), (one, zero), (one, one))]
    assert np.allclose(found, quantiles.CHI2, atol=1e-4)


def weighted_chi2_cdf(x, second, third):
    """P(z1^2 + second z2^2 + third z3^2 <= x) by quadrature over the angle and radius of (z2, z3)."""
    from scipy.special import erf

    nodes, weights = np.polynomial.legendre.leggauss(120)
    angle = (np.arange(32) + 0.5) * np.pi / 64
    squeeze = second * np.cos(angle) ** 2 + third * np.sin(angle) ** 2
    end = np.minimum(np.sqrt(x / np.maximum(squeeze, 1e-12)), 9.0)[:, None]
    u = 1 - (1 - 0.5 * (nodes + 1)) ** 2  # clustered towards the root at the end
    r = end * u
    inside = erf(np.sqrt(np.maximum(x - squeeze[:, None] * r**2, 0) / 2)) * r * np.exp(-0.5 * r**2)
    return (inside * (1 - 0.5 * (nodes + 1)) * weights * end).sum() / len(angle)


@pytest.mark.parametrize("second, third", [(0.3, 0.0), (0.5, 0.5), (0.9, 0.1), (1.0, 0.4), (0.07, 0.03)])
def test_the_polynomial_is_the_quantile(second, third):
    found = quantiles.chi2_quantile(np.array([second]), np.array([third]))[0]
    low, high = (
        weighted_chi2_cdf(found * 0.999, second, third),
        weighted_chi2_cdf(found * 1.001, second, third),
    )
    assert low < 0.95 < high


def test_bounds_lie_above_and_the_estimate_close(rng):
    forms = symmetric_forms(rng, 100)
    true = np.quantile(values(forms, rng.normal(size=(20_000, 3))), 0.95, axis=1)
    spreads, mean_square = quantiles.spread(forms)
    closed, table = quantiles.bound(spreads), quantiles.bound_quantile(spreads)
    assert (closed >= table * (1 - 1e-3)).all(), "the closed bound is never below the exact one"
    assert (table >= true * 0.98).all(), "two per cent is the noise of the samples"
    ratio = quantiles.estimate(spreads, mean_square) / true
    assert 0.93 < np.quantile(ratio, 0.05) and np.quantile(ratio, 0.95) < 1.05
    assert abs(np.median(ratio) - 1) < 0.04


def test_nothing_bends_nothing():
    spreads, mean_square = quantiles.spread(np.zeros((2, 3, 3, 3)))
    for found in (quantiles.bound(spreads), quantiles.bound_quantile(spreads)):
        assert (found == 0).all()
    assert (quantiles.estimate(spreads, mean_square) == 0).all()
