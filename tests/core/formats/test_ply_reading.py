"""Splat PLYs as trainers and editors write them, and what is wrong with some."""

import numpy as np
import pytest

from gaussianimate.core.errors import FormatError
from gaussianimate.core.formats import read_cloud


def test_values_are_activated(splats):
    columns = splats.columns(5)
    cloud, notes = read_cloud(splats.write(columns=columns))
    assert notes == ()
    np.testing.assert_array_equal(cloud.positions, np.stack([columns[k] for k in "xyz"], axis=1))
    np.testing.assert_allclose(cloud.scales[:, 1], np.exp(columns["scale_1"]), rtol=1e-6)
    np.testing.assert_allclose(cloud.opacities, 1 / (1 + np.exp(-columns["opacity"])), rtol=1e-6)
    q = np.stack([columns[f"rot_{i}"] for i in range(4)], axis=1)
    np.testing.assert_allclose(cloud.rotations, q / np.linalg.norm(q, axis=1, keepdims=True), atol=1e-6)
    assert cloud.sh.dtype == cloud.positions.dtype == np.float32


@pytest.mark.parametrize(("degree", "rest"), [(0, 0), (1, 9), (2, 24), (3, 45)])
def test_degree_follows_the_files_own_count(splats, degree, rest):
    columns = splats.columns(8, degree)
    cloud, _ = read_cloud(splats.write(columns=columns))
    assert cloud.sh_degree == degree
    assert cloud.sh.shape == (8, rest // 3 + 1, 3)
    for channel in range(3):
        np.testing.assert_array_equal(cloud.sh[:, 0, channel], columns[f"f_dc_{channel}"])
        for k in range(rest // 3):
            column = columns[f"f_rest_{channel * rest // 3 + k}"]
            np.testing.assert_array_equal(cloud.sh[:, 1 + k, channel], column)


@pytest.mark.parametrize(("rest", "degree"), [(3, 0), (12, 1), (30, 2), (72, 3), (10, 0)])
def test_odd_counts_of_harmonics_give_a_lower_degree_and_a_note(splats, rest, degree):
    columns = splats.columns(4)
    rng = np.random.default_rng(1)
    columns |= {f"f_rest_{i}": rng.normal(size=4).astype("f4") for i in range(rest)}
    cloud, notes = read_cloud(splats.write(columns=columns))
    assert cloud.sh_degree == degree
    assert any(f"{rest} f_rest" in note for note in notes)
    if degree:
        np.testing.assert_array_equal(cloud.sh[:, 1, 2], columns[f"f_rest_{2 * rest // 3}"])


def test_property_order_does_not_matter_bit_for_bit(splats, same_clouds):
    columns = splats.columns(8, 3)
    names = np.random.default_rng(3).permutation(list(columns))
    shuffled = {name: columns[name] for name in names}
    straight, _ = read_cloud(splats.write("a.ply", columns))
    same_clouds(read_cloud(splats.write("b.ply", shuffled))[0], straight)


def test_unknown_extra_properties_are_passed_over(splats, same_clouds):
    columns = splats.columns(8, 1)
    straight, _ = read_cloud(splats.write("a.ply", columns))
    columns = {"label": np.full(8, np.nan, "f4"), **columns, "confidence": np.full(8, np.inf, "f4")}
    columns["nx"] = np.full(8, np.nan, "f4")
    cloud, notes = read_cloud(splats.write("b.ply", columns))
    assert notes == ()
    same_clouds(cloud, straight)


@pytest.mark.parametrize("order", ["binary_big_endian", "binary_little_endian"])
@pytest.mark.parametrize("kind", ["float", "double"])
def test_byte_orders_and_doubles(splats, same_clouds, order, kind):
    columns = splats.columns(8, 2)
    straight, _ = read_cloud(splats.write("a.ply", columns))
    same_clouds(read_cloud(splats.write("b.ply", columns, order=order, kind=kind))[0], straight)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_ascii_equals_binary(splats, same_clouds, newline):
    columns = splats.columns(8, 3)
    straight, _ = read_cloud(splats.write("a.ply", columns))
    same_clouds(read_cloud(splats.write("b.ply", columns, order="ascii", newline=newline))[0], straight, 1e-5)


def test_ascii_with_blanks_and_nan(splats):
    path = splats.write(order="ascii")
    lines = path.read_text().split("\n")
    start = lines.index("end_header") + 1
    lines[start] = "  " + lines[start].replace(" ", "   ") + " \t"
    lines[start + 1] = "nan " + lines[start + 1].split(" ", 1)[1]
    path.write_text("\n".join(lines))
    cloud, notes = read_cloud(path)
    assert len(cloud) == 7
    assert "1 of 8 splats" in notes[0]


@pytest.mark.parametrize("order", ["binary_little_endian", "binary_big_endian", "ascii"])
def test_other_elements_around_the_vertices_are_passed_over(splats, same_clouds, order):
    code = ">" if "big" in order else "<"
    before = (
        ["element extrinsic 4", "property float extrinsic", "element poly 2", "property list uchar int ids"],
        b"1\n2\n3\n4\n3 1 2 3\n1 9\n"
        if order == "ascii"
        else np.arange(4, dtype=code + "f4").tobytes()
        + b"\x03"
        + np.arange(3, dtype=code + "i4").tobytes()
        + b"\x01"
        + np.arange(1, dtype=code + "i4").tobytes(),
    )
    after = (
        [
            "element version 3",
            "property uchar version",
            "element face 0",
            "property list uchar int vertex_indices",
        ],
        b"1\n2\n3\n" if order == "ascii" else bytes([1, 2, 3]),
    )
    columns = splats.columns(8, 1)
    straight, _ = read_cloud(splats.write("a.ply", columns))
    path = splats.write("b.ply", columns, order=order, before=[before], after=[after])
    same_clouds(read_cloud(path)[0], straight, 1e-6)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_comments_and_line_ends_in_the_header(splats, same_clouds, newline):
    columns = splats.columns(8)
    straight, _ = read_cloud(splats.write("a.ply", columns))
    comments = ["comment", "comment element vertex 3", "obj_info num_cols 4", "comment SplatRenderMode mip"]
    cloud, notes = read_cloud(splats.write("b.ply", columns, comments=comments, newline=newline))
    same_clouds(cloud, straight)
    assert any("'mip'" in note for note in notes)


def test_2dgs_render_mode_is_noted(splats):
    _, notes = read_cloud(
        splats.write(comments=["comment SplatRenderMode: default", "comment SplatRenderMode 2dgs"])
    )
    assert any("'2dgs'" in note for note in notes)


def test_unusable_rows_are_dropped_and_counted(splats):
    columns = splats.columns(8, 1)
    columns["x"][0] = np.nan
    columns["scale_1"][1] = np.inf
    columns["rot_2"][2] = np.nan
    columns["f_rest_4"][3] = -np.inf
    for i in range(4):
        columns[f"rot_{i}"][4] = 0
    cloud, notes = read_cloud(splats.write(columns=columns))
    np.testing.assert_array_equal(cloud.positions[:, 1], columns["y"][5:])
    assert (
        "5 of 8 splats" in notes[0]
        and "4 with a value" in notes[0]
        and "1 with a zero quaternion" in notes[0]
    )
    assert any("62 %" in note for note in notes)


def test_infinite_logits_are_opaque_and_clear(splats):
    columns = splats.columns(4)
    columns["opacity"][:] = [np.inf, -np.inf, 200, -200]
    cloud, notes = read_cloud(splats.write(columns=columns))
    assert notes == ()
    np.testing.assert_array_equal(cloud.opacities, [1, 0, 1, 0])


def test_zero_rows_are_dropped_with_a_warning(splats):
    columns = splats.columns(1001)
    for values in columns.values():
        values[1:] = 0
    cloud, notes = read_cloud(splats.write(columns=columns))
    assert len(cloud) == 1
    assert "1,000 of 1,001" in notes[0]
    assert any(note.startswith("Warning: 100 %") for note in notes)


def test_nothing_but_unusable_rows_is_an_error(splats):
    columns = splats.columns(3)
    columns["y"][:] = np.nan
    with pytest.raises(FormatError, match=r"none of its splats is usable: 3 of 3"):
        read_cloud(splats.write(columns=columns))


def test_scales_exponentiated_twice_are_limited_and_reported(splats):
    columns = splats.columns(10_000)
    for i in range(3):
        columns[f"scale_{i}"] = np.linspace(5, 30, 10_000, dtype="f4")
    cloud, notes = read_cloud(splats.write(columns=columns))
    diagonal = np.linalg.norm(np.ptp(cloud.positions, axis=0))
    assert len(cloud) == 10_000
    assert cloud.scales.max() <= diagonal * 1.000001
    assert any("times the size of the scene" in n and "exponentiated twice" in n for n in notes)
    assert any("10,000 splats were larger" in n for n in notes)


def test_a_scene_larger_than_single_precision_measures(splats, recwarn):
    columns = splats.columns(8, 0)
    columns["x"][:2], columns["y"][:2] = [3e38, -3e38], [-3e38, 3e38]
    cloud, _ = read_cloud(splats.write("far.ply", columns))
    assert len(cloud) == 8 and np.isfinite(cloud.scales).all() and not recwarn.list


def test_scales_whose_exponential_overflows_are_dropped(splats):
    columns = splats.columns(4)
    columns["scale_0"][2] = 1000
    cloud, notes = read_cloud(splats.write(columns=columns))
    assert len(cloud) == 3 and "1 of 4" in notes[0]
    assert np.isfinite(cloud.scales).all()


def test_linear_scales_are_reported(splats):
    columns = splats.columns(1000)
    for i in range(3):
        columns[f"scale_{i}"][:] = 0.01
    _, notes = read_cloud(splats.write(columns=columns))
    assert any("scales look linear" in note for note in notes)


def test_ordinary_scales_are_not_reported(splats):
    assert read_cloud(splats.write(columns=splats.columns(1000)))[1] == ()


def test_plain_point_cloud_names_what_is_missing(splats):
    columns = {k: np.zeros(4, "f4") for k in ("x", "y", "z", "red", "green", "blue")}
    with pytest.raises(FormatError, match=r"plain point cloud.*f_dc_0.*opacity.*rot_3"):
        read_cloud(splats.write(columns=columns))


def test_renamed_properties_are_named(splats):
    columns = {k.replace("rot_", "rotation_"): v for k, v in splats.columns(4).items()}
    with pytest.raises(FormatError, match=r"rot_0, rot_1, rot_2, rot_3 are missing.*rotation_0"):
        read_cloud(splats.write(columns=columns))


def test_a_gap_in_the_harmonics_is_named(splats):
    columns = splats.columns(4, 1)
    columns["f_rest_99"] = columns.pop("f_rest_3")
    with pytest.raises(FormatError, match=r"f_rest_3 are missing"):
        read_cloud(splats.write(columns=columns))


def test_mesh_is_not_read_as_splats(splats):
    faces = (["element face 1", "property list uchar int vertex_indices"], b"\x03" + bytes(12))
    path = splats.write(columns={k: np.zeros(3, "f4") for k in "xyz"}, after=[faces])
    with pytest.raises(FormatError, match="this is a mesh"):
        read_cloud(path)


def test_names_with_any_letters(splats, same_clouds):
    straight, _ = read_cloud(splats.write("plain.ply"))
    same_clouds(read_cloud(splats.write("кадр 東京/frame #ünï 1.ply"))[0], straight)


def test_many_blocks_equal_one(splats, same_clouds):
    columns = splats.columns(10_000, 1)
    cloud, _ = read_cloud(splats.write(columns=columns))
    np.testing.assert_array_equal(cloud.positions, np.stack([columns[k] for k in "xyz"], axis=1))
    np.testing.assert_array_equal(cloud.sh[:, 3, 2], columns["f_rest_8"])
