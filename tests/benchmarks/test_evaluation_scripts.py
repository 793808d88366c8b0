"""The scripts of `make evaluate`, on a small capture."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from gaussianimate.core.formats import read_capture

ROOT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"


def load(path):
    spec = spec_from_file_location(f"script_{path.stem}", path)
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def script(monkeypatch):
    """A script by name; scripts import each other from their folder."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return lambda name: load(ROOT / "benchmarks" / f"{name}.py")


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    capture = load(ROOT / "tests/core/evaluate/swinging.py").capture(clips=10, frames=8)
    path = tmp_path_factory.mktemp("scripts") / "swinging.npz"
    skeleton = capture.skeleton
    np.savez(
        path,
        vertices=capture.positions,
        clip=capture.clips,
        fps=24.0,
        joint_names=np.array(skeleton.names),
        joint_parents=skeleton.parents,
        joint_rest=skeleton.rest,
        joint_mats=skeleton.joint_mats,
    )
    return path


def rows(text, name):
    """Cells of the table rows that start with a name."""
    found = [line.strip("| \n").split(" | ") for line in text.splitlines()]
    return [cells[1:] for cells in found if cells[0] == name]


def test_a_table_of_methods(script, file, monkeypatch, capsys):
    command = ["evaluate.py", str(file), "--methods", "bob,match,auto", "--bones", "4"]
    monkeypatch.setattr(sys, "argv", command)
    script("evaluate").main()
    out = capsys.readouterr().out
    for name in ("floor", "bob", "match", "auto"):
        (cells,) = rows(out, name)
        figures = [float(cell) for cell in cells]
        assert len(figures) == 9 and figures[3] == pytest.approx(np.mean(figures[:3]), abs=1e-3)
    assert float(rows(out, "auto")[0][3]) < float(rows(out, "bob")[0][3])


def test_sweeps_of_matching_are_printed_and_plotted(script, file, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["sweeps", str(file), "--bones", "4", "--plots", str(tmp_path)])
    script("motion_sweeps").main()
    out = capsys.readouterr().out
    errors = rows(out, "RMSE %")
    assert [len(cells) for cells in errors] == [7, 7, 6]
    assert float(errors[2][0]) > 2 * float(errors[2][-1])  # no step keeps the rigid start
    names = ("patch-length", "pyramid-levels", "step-lambda-alpha", "database-clips")
    assert {path.name for path in tmp_path.iterdir()} == {f"motion-{name}.svg" for name in names}
    assert len(rows(out, "5")[0]) == 7


def test_sweeps_of_the_skeleton_are_printed_and_plotted(script, file, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["sweeps", str(file), "--bones", "4", "--plots", str(tmp_path)])
    sweeps = script("skeleton_sweeps")
    monkeypatch.setattr(sweeps, "THRESHOLDS", (0.2, 0.4))
    sweeps.main()
    out = capsys.readouterr().out
    assert [len(cells) for cells in rows(out, "joints")] == [2, 4]
    assert all(int(cell) >= 1 for cells in rows(out, "joints") for cell in cells)
    assert len(list(tmp_path.glob("skeleton-*.svg"))) == 4


def test_rest_poses_are_frames_of_the_capture(script, file):
    capture = read_capture(file)
    frames = script("skeleton_sweeps").canonical_frames(capture)
    assert [frames[name] for name in ("first", "middle", "last")] == [0, 40, 79]
    sizes = np.linalg.norm(np.ptp(capture.positions, axis=1), axis=-1)
    assert frames["largest box"] == sizes.argmax()


def test_curves_lie_where_their_values_are(script):
    plots = script("plots")
    drawn = ElementTree.fromstring(plots.plot("t", (1, 2, 4), {"a": [2.0, 1.0, 0.0], "b": [1.0, 1.0, 1.0]}))
    lines = [
        [tuple(map(float, pair.split(","))) for pair in line.get("points").split()]
        for line in drawn.iter(f"{SVG}polyline")
    ]
    assert len(lines) == 2
    (x, y), flat = np.array(lines[0]).T, np.array(lines[1])[:, 1]
    assert (x[2] - x[1]) / (x[1] - x[0]) == pytest.approx(2, abs=0.01)
    assert y[0] < y[1] < y[2] and np.ptp(flat) == 0 and y[1] == flat[0]
    named = plots.plot("t", ("first", "last"), {"a": [1.0, 2.0]})
    assert "first" in named and "last" in named
