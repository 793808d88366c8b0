"""The dictionary that comes with the package."""

import json

import numpy as np
import pytest

from gaussianimate.core.errors import RigError
from gaussianimate.core.resample.dictionary import SHIPPED, Dictionary, load_dictionary, save_dictionary
from gaussianimate.core.resample.grid import OPACITIES, PAIRS, STEP, problems


@pytest.fixture(scope="module")
def shipped():
    return load_dictionary()


def test_it_says_how_it_was_trained(shipped):
    assert {"conditioning", "loss", "iterations", "rays", "seed", "torch"} <= set(shipped.metadata)
    assert shipped.metadata["conditioning"] == 0.002
    assert SHIPPED.stat().st_size < 1 << 20


def test_diameters_halve_on_average(shipped):
    """Over all 16,000 entries, within ten per cent."""
    assert shipped.table("diameter_ratio").shape == (40, 40, 10)
    assert 0.45 < shipped.table("diameter_ratio").mean() < 0.55


def test_no_child_is_larger_than_its_parent(shipped):
    axes, _ = problems()
    ratios = (np.exp(shipped.children[..., 3:6]) * axes[:, None]).max(axis=(1, 2))
    assert np.allclose(ratios, shipped.diameter_ratio, rtol=1e-5)
    assert ratios.max() < 0.85


def test_needles_halve_with_little_error(shipped):
    first, second = np.indices((40, 40))
    needles = (STEP * first >= 2) & (second <= first)
    o = 4  # opacity 0.5
    ratios, errors = shipped.table("diameter_ratio")[needles, o], shipped.table("rendering_error")[needles, o]
    assert (0.40 <= ratios).all() and (ratios <= 0.62).all()
    assert (errors * OPACITIES[o]).max() <= 0.02


def test_reduction_of_opaque_elongated_splats(shipped):
    table = shipped.table("diameter_ratio")
    first, second = np.indices((40, 40))
    chosen = (10 ** (STEP * first) >= 25) & (second <= first)
    assert 1.6 < (1 / table[chosen][:, 2:]).mean() < 2.6


def test_errors_stay_small_everywhere(shipped):
    """Also for faint splats, which the absolute loss would let vanish."""
    assert shipped.largest_error.max() <= 0.4
    assert shipped.rendering_error.max() <= 0.04


def test_measured_errors_are_those_of_the_children(shipped):
    import torch

    from gaussianimate.core.resample.splitting_loss import alpha_errors, draw_rays

    _, opacities = problems()
    rows = np.arange(0, 780, 97)
    rays = draw_rays(20_000, torch.Generator().manual_seed(99))
    o = torch.from_numpy(opacities[rows]).float()
    found = alpha_errors(rays, torch.from_numpy(shipped.children[rows].copy()), o) / o
    assert np.allclose(found.square().mean(dim=0).sqrt().numpy(), shipped.rendering_error[rows], rtol=0.05)


def test_entries_repeat_where_an_axis_has_lost_its_say(shipped):
    table = shipped.table()
    assert np.array_equal(table[39, 0], table[20, 5])
    assert np.array_equal(table[30, 30], table[39, 39])
    assert not np.array_equal(table[39, 39], table[39, 0])
    assert np.array_equal(table[3, 9], table[9, 3]), "the other way round below the diagonal"
    assert PAIRS.shape == (78, 2)


def test_axes_that_repeat_really_have_no_say(shipped):
    """Trained for a far more elongated parent, an entry comes out as the one that stands for it."""
    import torch

    from gaussianimate.core.resample.trainer import solve
    from gaussianimate.core.resample.training_state import TrainingSettings

    pair = len(PAIRS) - 1  # both axes out of reach
    start = torch.from_numpy(shipped.children[pair * 10 + 2 : pair * 10 + 9 : 3].copy())
    axes = torch.tensor([[1.0, 1e-3, 1e-4]]).expand(3, 3)
    opacities = torch.from_numpy(OPACITIES[2:9:3]).float()
    settings = TrainingSettings(iterations=60, learning_rate=0.003)
    solved, _ = solve(start, axes, opacities, settings, seed=5)
    ratios = np.exp(solved[:, :, 3]).max(axis=1)
    assert np.allclose(ratios, shipped.diameter_ratio[pair * 10 + 2 : pair * 10 + 9 : 3], rtol=0.05)


def test_more_conditioning_makes_smaller_children(shipped):
    import torch

    from gaussianimate.core.resample.trainer import solve
    from gaussianimate.core.resample.training_state import TrainingSettings

    start = torch.from_numpy(shipped.children[[4]].copy())
    found = []
    for weight in (0.0005, 0.002, 0.008):
        settings = TrainingSettings(iterations=150, conditioning=weight)
        children, _ = solve(start, torch.ones(1, 3), torch.tensor([0.5]), settings, seed=1)
        found.append(np.exp(children[0, :, 3:6]).max())
    assert found[0] > found[1] > found[2]


def test_files_keep_all_and_show_damage(shipped, tmp_path):
    path = tmp_path / "d.npz"
    save_dictionary(shipped, path)
    again = load_dictionary(path)
    assert again.checksum == shipped.checksum and again.metadata == shipped.metadata
    with np.load(path) as archive:
        arrays = dict(archive)
    header = json.loads(str(arrays["header"]))
    for name, change, problem in (
        ("children", arrays["children"] * np.float32(1.001), "checksum"),
        ("children", arrays["children"][:5], "shape"),
        ("header", np.array(json.dumps({**header, "format": 99})), "format 99"),
        ("header", np.array("nonsense"), "damaged"),
    ):
        broken = tmp_path / f"{problem}.npz".replace(" ", "_")
        np.savez(broken, **{**arrays, name: change})
        with pytest.raises(RigError, match=problem):
            load_dictionary(broken)
    with pytest.raises(RigError, match="no such file"):
        load_dictionary(tmp_path / "missing.npz")


def test_it_cannot_be_changed(shipped):
    with pytest.raises(ValueError):
        shipped.children[0] = 0
    with pytest.raises(ValueError):
        Dictionary(np.zeros((1, 5, 7), np.float32), *[shipped.diameter_ratio] * 3)
