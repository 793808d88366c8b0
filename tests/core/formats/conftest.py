"""Builders of small splat files; every value is known to the tests."""

from types import SimpleNamespace

import numpy as np
import pytest

REST = {0: 0, 1: 9, 2: 24, 3: 45}


def splat_names(degree):
    names = ["x", "y", "z", "nx", "ny", "nz", "f_dc_0", "f_dc_1", "f_dc_2"]
    names += [f"f_rest_{i}" for i in range(REST.get(degree, 0))]
    return [*names, "opacity", "scale_0", "scale_1", "scale_2", "rot_0", "rot_1", "rot_2", "rot_3"]


def splat_columns(count=8, degree=0, seed=0):
    """Columns of `count` splats as a file holds them: logits, logs, quaternions of any length."""
    rng = np.random.default_rng(seed)
    columns = {name: rng.normal(size=count).astype("f4") for name in splat_names(degree)}
    for name in ("nx", "ny", "nz"):
        columns[name][:] = 0
    for i in range(3):
        columns[f"scale_{i}"] = (columns[f"scale_{i}"] * 0.3 - 4).astype("f4")
    columns["rot_0"] += 3
    return columns


def ply_bytes(
    columns,
    order="binary_little_endian",
    kind="float",
    before=(),
    after=(),
    comments=(),
    newline="\n",
    count=None,
):
    """A PLY of the columns. `before` and `after` are (header lines, body) of further elements."""
    rows = len(next(iter(columns.values())))
    lines = ["ply", f"format {order} 1.0", *comments]
    for header, _ in before:
        lines += header
    lines += [f"element vertex {rows if count is None else count}"]
    lines += [f"property {kind} {name}" for name in columns]
    for header, _ in after:
        lines += header
    head = newline.join([*lines, "end_header"]).encode() + newline.encode()
    table = np.stack(list(columns.values()), axis=1) if columns else np.zeros((rows, 0))
    if order == "ascii":
        body = newline.join(" ".join(f"{v:.9g}" for v in row) for row in table).encode() + newline.encode()
    else:
        code = {"float": "f4", "double": "f8"}[kind]
        body = table.astype((">" if "big" in order else "<") + code).tobytes()
    return head + b"".join(b for _, b in before) + body + b"".join(b for _, b in after)


@pytest.fixture
def splats(tmp_path):
    """Columns, bytes and files of small splat PLYs."""

    def write(name="splats.ply", columns=None, **options):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(ply_bytes(splat_columns() if columns is None else columns, **options))
        return path

    return SimpleNamespace(columns=splat_columns, bytes=ply_bytes, names=splat_names, write=write)


@pytest.fixture
def same_clouds():
    """Assert that two clouds hold the same values, bit for bit unless `atol` is given."""

    def check(a, b, atol=0.0):
        for name in ("positions", "rotations", "scales", "opacities", "sh"):
            np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=0, atol=atol, err_msg=name)

    return check
