"""Clouds and native point clouds are the same thing."""

import bpy
import numpy as np
import pytest
from compare import assert_equal_bits
from rigs import make_cloud

from gaussianimate.core.errors import RigError
from gaussianimate.gaussianimate_addon.attributes import read_attribute
from gaussianimate.gaussianimate_addon.point_cloud import (
    NATIVE_SPLATS,
    cloud_to_point_cloud,
    is_splat_data,
    point_cloud_to_cloud,
    write_cloud,
)

native = pytest.mark.skipif(
    not NATIVE_SPLATS, reason="this Blender has no native splats (5.3 and later have)"
)


@pytest.mark.parametrize("degree", range(4))
def test_round_trip_is_bit_exact(scene, degree):
    cloud = make_cloud(50, degree=degree)
    assert_equal_bits(point_cloud_to_cloud(cloud_to_point_cloud(cloud, "c")), cloud)


def test_writing_a_lower_degree_removes_the_higher_coefficients(scene):
    data = cloud_to_point_cloud(make_cloud(20, degree=3), "c")
    write_cloud(data, make_cloud(20, degree=1))
    assert point_cloud_to_cloud(data).sh_degree == 1


def test_incomplete_band_does_not_count(scene):
    data = cloud_to_point_cloud(make_cloud(20, degree=2), "c")
    data.attributes.remove(data.attributes["radiance:sh_7"])
    assert point_cloud_to_cloud(data).sh_degree == 1


def test_other_data_is_no_splat_data(scene):
    assert not is_splat_data(None)
    assert not is_splat_data(bpy.data.meshes.new("m"))
    plain = bpy.data.pointclouds.new("plain")
    assert not is_splat_data(plain)
    with pytest.raises(RigError, match="plain"):
        point_cloud_to_cloud(plain)


@native
def test_type_is_native(scene):
    assert cloud_to_point_cloud(make_cloud(20), "c").type == "GAUSSIAN_SPLAT"


@native
def test_blenders_own_importer_reads_the_same(scene, tmp_path):
    cloud = make_cloud(60, degree=3)
    path = tmp_path / "c.ply"
    write_reference_ply(path, cloud)
    bpy.ops.wm.ply_import(filepath=str(path))
    data = bpy.context.object.data
    ours = cloud_to_point_cloud(cloud, "c")
    assert {(a.name, a.data_type) for a in data.attributes} == {
        (a.name, a.data_type) for a in ours.attributes
    }
    read = point_cloud_to_cloud(data)
    np.testing.assert_array_equal(read.positions, cloud.positions)
    np.testing.assert_allclose(read.scales, cloud.scales, rtol=1e-5)
    np.testing.assert_allclose(np.abs((read.rotations * cloud.rotations).sum(axis=1)), 1, atol=1e-5)
    np.testing.assert_allclose(read.opacities, cloud.opacities, atol=1e-5)
    np.testing.assert_array_equal(read.sh, cloud.sh)


@pytest.mark.skipif(NATIVE_SPLATS, reason="this Blender draws splats itself")
def test_points_are_visible_without_native_splats(scene):
    cloud = make_cloud(20)
    data = cloud_to_point_cloud(cloud, "c")
    np.testing.assert_array_equal(read_attribute(data, "radius"), np.median(cloud.scales, axis=1))
    assert data.materials[0] is not None


def write_reference_ply(path, cloud):
    """The layout of the 3DGS reference code, written without our own writer."""
    rest = cloud.sh[:, 1:].transpose(0, 2, 1).reshape(len(cloud), -1)
    columns = np.column_stack(
        [
            cloud.positions,
            np.zeros_like(cloud.positions),
            cloud.sh[:, 0],
            rest,
            np.log(cloud.opacities / (1 - cloud.opacities)),
            np.log(cloud.scales),
            cloud.rotations,
        ]
    ).astype("<f4")
    names = [*"xyz", "nx", "ny", "nz", *(f"f_dc_{i}" for i in range(3))]
    names += [f"f_rest_{i}" for i in range(rest.shape[1])] + ["opacity"]
    names += [f"scale_{i}" for i in range(3)] + [f"rot_{i}" for i in range(4)]
    header = ["ply", "format binary_little_endian 1.0", f"element vertex {len(cloud)}"]
    header += [f"property float {name}" for name in names] + ["end_header", ""]
    path.write_bytes("\n".join(header).encode() + columns.tobytes())
