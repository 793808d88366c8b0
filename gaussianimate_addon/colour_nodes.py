"""Rotation of view-dependent colour (spherical harmonics, degrees 1-3) as geometry nodes.

As in ``core.deform.sh``: a band of 2 l + 1 coefficients c is read off 2 l + 1 fixed directions d_k, turned
back by the rotation Q, and fitted again: c' = D^-1 (Y(Q^T d_k) . c), which is exact because the band spans
just as many functions. The three colour channels ride along as one vector.
"""

from __future__ import annotations

import bpy

from ..core.deform.sh import SH_C1, SH_C2, SH_C3, band_samples
from .node_builder import ROTATION, VECTOR, NodeBuilder, Socket

_SCALES = {
    1: (-SH_C1, SH_C1, -SH_C1),
    2: (SH_C2[0], -SH_C2[0], SH_C2[1], -SH_C2[0], SH_C2[2]),
    3: (-SH_C3[0], SH_C3[1], -SH_C3[2], SH_C3[3], -SH_C3[2], SH_C3[4], -SH_C3[0]),
}


def rotate_colours(
    n: NodeBuilder, geometry: Socket, selection: Socket, jacobian: Socket, degree: int
) -> Socket:
    """Return the geometry with the SH of the selected splats turned by the rotation nearest to a Jacobian."""
    geometry, field = n.capture(geometry, turn=(ROTATION, _nearest_rotation(n, jacobian)))
    for band in range(1, degree + 1):
        names = [f"radiance:sh_{i}" for i in range(band**2 - 1, (band + 1) ** 2 - 1)]
        node = n.tree.nodes.new("GeometryNodeGroup")
        node.node_tree = _band_group(band)
        n.feed(node.inputs[0], field["turn"])
        for socket, name in zip(node.inputs[1:], names, strict=True):
            n.feed(socket, n.attribute(name, "FLOAT_VECTOR"))
        results = {name: (VECTOR, socket) for name, socket in zip(names, node.outputs, strict=True)}
        geometry, turned = n.capture(geometry, **results)
        for name in names:
            geometry = n.store(geometry, name, "FLOAT_VECTOR", turned[name], selection)
    return geometry


def _nearest_rotation(n: NodeBuilder, matrix: Socket) -> Socket:
    """Return the rotation of the polar decomposition, proper also where the matrix mirrors."""
    u, _, v = n.node("FunctionNodeMatrixSVD", matrix).outputs
    back = n.one("FunctionNodeTransposeMatrix", v)
    sign = n.one("FunctionNodeMatrixDeterminant", n.multiply(u, back))
    fix = n.one("FunctionNodeCombineTransform", None, None, n.one("ShaderNodeCombineXYZ", 1.0, 1.0, sign))
    rotation = n.multiply(n.multiply(u, fix), back)
    return n.node("FunctionNodeSeparateTransform", rotation).outputs["Rotation"]


def _band_group(band: int) -> bpy.types.NodeTree:
    """Return the group (shared by all deformers) Rotation, 2 l + 1 coefficients -> coefficients."""
    name = f"GaussiAnimate SH band {band}"
    found = bpy.data.node_groups.get(name)
    if found is not None:
        return found
    count = 2 * band + 1
    n = NodeBuilder(name)
    n.input("Rotation", "Rotation")
    for i in range(count):
        n.input(f"In {i}", "Vector")
        n.output(f"Out {i}", "Vector")
    rotation, *coefficients = n.node("NodeGroupInput").outputs[: count + 1]
    scaled = [n.vector("MULTIPLY", c, (s,) * 3) for c, s in zip(coefficients, _SCALES[band], strict=True)]
    back = n.one("FunctionNodeInvertRotation", rotation)
    directions, inverse = band_samples(band)
    basis, values = _basis_group(band), []
    for direction in directions:
        node = n.tree.nodes.new("GeometryNodeGroup")
        node.node_tree = basis
        n.feed(node.inputs[0], n.one("FunctionNodeRotateVector", tuple(map(float, direction)), back))
        values.append(n.sum_of_products(scaled, list(node.outputs)))
    results = [n.sum_of_products(values, [(float(f),) * 3 for f in row]) for row in inverse]
    n.node("NodeGroupOutput", *results)
    n.arrange()
    return n.tree


def _basis_group(band: int) -> bpy.types.NodeTree:
    """Return the group Direction -> the band's polynomials, without their constant factors (`_SCALES`)."""
    name = f"GaussiAnimate SH basis {band}"
    found = bpy.data.node_groups.get(name)
    if found is not None:
        return found
    n = NodeBuilder(name)
    n.input("Direction", "Vector")
    for i in range(2 * band + 1):
        n.output(f"Value {i}", "Float")
    direction = n.node("NodeGroupInput").outputs[0]
    n.node("NodeGroupOutput", *_basis(n, band, *n.xyz(direction)))
    n.arrange()
    return n.tree


def _basis(n: NodeBuilder, band: int, x: Socket, y: Socket, z: Socket) -> list[Socket]:
    """Return the band's polynomials at a direction."""
    if band == 1:
        return [y, z, x]

    def product(a: Socket, b: Socket) -> Socket:
        return n.math("MULTIPLY", a, b)

    xx, yy, zz, xy = product(x, x), product(y, y), product(z, z), product(x, y)
    difference = n.math("SUBTRACT", xx, yy)
    if band == 2:
        axial = n.math("MULTIPLY_ADD", zz, 3.0, -1.0)  # 2 zz - xx - yy on the unit sphere
        return [xy, product(y, z), axial, product(x, z), difference]
    ring = n.math("MULTIPLY_ADD", zz, 5.0, -1.0)  # 4 zz - xx - yy
    pole = n.math("MULTIPLY_ADD", zz, 5.0, -3.0)  # 2 zz - 3 xx - 3 yy
    return [
        product(y, n.math("MULTIPLY_ADD", xx, 3.0, n.math("MULTIPLY", yy, -1.0))),
        product(xy, z),
        product(y, ring),
        product(z, pole),
        product(x, ring),
        product(z, difference),
        product(x, n.math("MULTIPLY_ADD", yy, -3.0, xx)),
    ]
