"""The gradient rig as geometry nodes: positions, covariances and colours of splats under bones.

The equations are those of ``core.deform.deform``. For a splat with rest centre p, weights w_j and weight
gradients G_j (both in the object's rest space), bone motions T_j = P_j B_j^-1 in armature space, the bind
matrix M = H_rest^-1 O_rest and W = O^-1 H (armature to object, now)::

    q_j = T_j M p,   p' = W sum_j w_j q_j
    R   = W (sum_j w_j A_j M + eta sum_j (q_j - q) G_j^T),   q = sum_j w_j q_j
    R Q diag(s) = U diag(s') V^T        new axes U and scales s'

Splats that the pose does not move, up to single precision, are left out of every write, so that the rest
pose is the imported cloud bit by bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import bpy
import numpy as np
from numpy.typing import NDArray

from .colour_nodes import rotate_colours
from .node_builder import BOOLEAN, MATRIX, ROTATION, VECTOR, NodeBuilder, Socket

BONES_NODE = "Exists"  # name of the node that holds the group of bones
UNITS = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
STILL_POSITION = 2e-6  # of the coordinates at hand: what single precision makes of an untouched bone
STILL_SHAPE = 5e-5  # of the Jacobian, Frobenius norm of its distance from the identity


@dataclass(frozen=True)
class DeformNodes:
    """What a deformer group is built from.

    bones : names of the skin bones, in the order of ``skin:index_k``
    influences : number of ``skin:*_k`` slots, 1-4
    bind : (4, 4) M, object to armature space when bound
    size : diagonal of the rest cloud, object units
    sh_degree : degree of the colours, 0-3
    with_radius : also keep the ``radius`` of points up to date (Blender without native splats)
    """

    bones: Sequence[str]
    influences: int
    bind: NDArray[np.float64]
    size: float
    sh_degree: int
    with_radius: bool = False


def build_deform_group(name: str, settings: DeformNodes) -> bpy.types.NodeTree:
    """Return a new geometry-nodes group with inputs Geometry, Armature, Elastic and Rotate Colours."""
    n = NodeBuilder(name)
    n.input("Geometry", "Geometry")
    n.input("Armature", "Object", description="Armature whose skin bones carry the splats")
    n.input(
        "Elastic",
        "Float",
        default_value=1.0,
        min_value=0.0,
        max_value=4.0,
        description="How far splats stretch and shear where weights change: 0 not, 1 like the surface",
    )
    n.input(
        "Rotate Colours", "Bool", default_value=True, description="Turn view-dependent colour with the splats"
    )
    n.output("Geometry", "Geometry")
    geometry, armature, eta, colours, _ = n.node("NodeGroupInput").outputs

    to_object = n.node("GeometryNodeObjectInfo", armature, transform_space="RELATIVE").outputs["Transform"]
    bind = _constant_matrix(n, settings.bind)
    bones = _bones_group(f"{name} bones", settings.bones, settings.influences)
    centre, jacobian, exists = _blend(n, settings, bones, armature, to_object, bind, eta)
    moved = n.math("MULTIPLY", _moved(n, settings, centre, jacobian), exists)

    shape = n.node("FunctionNodeMatrixSVD", n.multiply(jacobian, _rest_shape(n)))
    geometry, field = n.capture(
        geometry,
        moved=(BOOLEAN, moved),
        position=(VECTOR, centre),
        axes=(ROTATION, _rotation(n, shape.outputs["U"])),
        scale=(VECTOR, shape.outputs["S"]),
        jacobian=(MATRIX, jacobian),
    )
    moved = field["moved"]
    geometry = n.one("GeometryNodeSetPosition", geometry, moved, field["position"])
    geometry = n.store(geometry, "rotation", "QUATERNION", field["axes"], moved)
    geometry = n.store(geometry, "scale", "FLOAT_VECTOR", field["scale"], moved)
    if settings.with_radius:
        middle = n.xyz(field["scale"])[1]  # singular values come in descending order
        geometry = n.store(geometry, "radius", "FLOAT", middle, moved)
    if settings.sh_degree:
        turned = rotate_colours(n, geometry, moved, field["jacobian"], settings.sh_degree)
        geometry = n.one("GeometryNodeSwitch", colours, geometry, turned, input_type="GEOMETRY")
    n.node("NodeGroupOutput", geometry)
    n.arrange()
    return n.tree


def _constant_matrix(n: NodeBuilder, matrix: NDArray[np.float64]) -> Socket:
    node = n.tree.nodes.new("FunctionNodeCombineMatrix")
    node.label = node.name = "Bind"
    set_bind(n.tree, matrix)
    return node.outputs[0]


def set_bind(tree: Any, matrix: NDArray[np.float64]) -> None:
    """Change the bind matrix of a deformer group."""
    for socket, value in zip(tree.nodes["Bind"].inputs, np.asarray(matrix).T.ravel(), strict=True):
        socket.default_value = float(value)


def get_bind(tree: Any) -> NDArray[np.float64]:
    """Return the bind matrix (4, 4) of a deformer group."""
    return np.array([socket.default_value for socket in tree.nodes["Bind"].inputs]).reshape(4, 4).T


def own_group(modifier: bpy.types.NodesModifier) -> Any:
    """Return the deformer group of a modifier, copied first where other objects use it too."""
    group: Any = modifier.node_group
    if group.users <= 1 + group.use_fake_user:
        return group
    group = group.copy()
    bones = group.nodes[BONES_NODE].node_tree
    own_bones = bones.copy()
    for node in group.nodes:
        if node.bl_idname == "GeometryNodeGroup" and node.node_tree == bones:
            node.node_tree = own_bones
    modifier.node_group = group
    return group


def is_deform_group(tree: Any) -> bool:
    """Whether the nodes that a deformer group is known by are there, which users can change."""
    bones = tree.nodes.get(BONES_NODE)
    return "Bind" in tree.nodes and getattr(bones, "node_tree", None) is not None


def bone_names(tree: Any) -> list[str]:
    """Return the names of the bones a deformer group follows, in the order of ``skin:index_k``."""
    return [node.inputs["Bone Name"].default_value for node in _bone_nodes(tree)]


def set_bone_names(tree: Any, names: Sequence[str]) -> None:
    """Let a deformer group follow the bones of these names."""
    for node, name in zip(_bone_nodes(tree), names, strict=True):
        node.inputs["Bone Name"].default_value = name


def _bone_nodes(tree: Any) -> list[Any]:
    group = next(node.node_tree for node in tree.nodes if node.name == BONES_NODE)
    return [node for node in group.nodes if node.bl_idname == "GeometryNodeBoneInfo"]


def _bones_group(name: str, bones: Sequence[str], influences: int) -> bpy.types.NodeTree:
    """Return a group Armature, Static, one Index an influence -> the motions of these skin bones; index -1 is
    Static. Matrices of bones are worked out once for all influences."""
    n = NodeBuilder(name)
    n.input("Armature", "Object")
    n.input("Static", "Matrix")
    for k in range(influences):
        n.input(f"Index {k}", "Int")
    for k in range(influences):
        n.output(f"Motion {k}", "Matrix")
    n.output("Exists", "Bool")
    armature, static, *indices = n.node("NodeGroupInput").outputs[: influences + 2]
    infos = [n.node("GeometryNodeBoneInfo", armature, bone) for bone in bones]
    motions = [
        n.multiply(info.outputs["Pose"], n.one("FunctionNodeInvertMatrix", info.outputs["Rest Pose"]))
        for info in infos
    ]
    chosen = [_choose(n, index, [static, *motions]) for index in indices]
    n.node("NodeGroupOutput", *chosen, infos[0].outputs["Exists"])
    n.arrange()
    return n.tree


def _choose(n: NodeBuilder, index: Socket, matrices: list[Socket]) -> Socket:
    """Return the matrix at ``index`` + 1."""
    switch = n.node("GeometryNodeIndexSwitch", data_type="MATRIX")
    while len(switch.index_switch_items) < len(matrices):
        switch.index_switch_items.new()
    n.feed(switch.inputs[0], n.integer("ADD", index, 1))
    for socket, matrix in zip(switch.inputs[1:], matrices, strict=False):
        n.feed(socket, matrix)
    return switch.outputs[0]


def _blend(
    n: NodeBuilder,
    settings: DeformNodes,
    bones: bpy.types.NodeTree,
    armature: Socket,
    to_object: Socket,
    bind: Socket,
    eta: Socket,
) -> tuple[Socket, Socket, Socket]:
    """Return the posed centre p' and the Jacobian R, both in object space, and whether the armature exists:
    without one the cloud stays at rest."""
    static = n.multiply(n.one("FunctionNodeInvertMatrix", to_object), n.one("FunctionNodeInvertMatrix", bind))
    slots = range(settings.influences)
    followed: Any = n.tree.nodes.new("GeometryNodeGroup")
    followed.node_tree, followed.name, followed.label = bones, BONES_NODE, "Skin bones"
    indices = [n.attribute(f"skin:index_{k}", "INT") for k in slots]
    for socket, value in zip(followed.inputs, [armature, static, *indices], strict=True):
        n.feed(socket, value)
    *motions, exists = followed.outputs
    weights = [n.attribute(f"skin:weight_{k}", "FLOAT") for k in slots]
    gradients = [n.xyz(n.attribute(f"skin:gradient_{k}", "FLOAT_VECTOR")) for k in slots]
    start = n.point(bind, n.one("GeometryNodeInputPosition"))
    points = [n.point(motion, start) for motion in motions]
    centre = n.sum_of_products(points, weights)
    away = [n.vector("SUBTRACT", point, centre) for point in points]
    columns = []
    for axis, unit in enumerate(UNITS):
        direction = n.direction(bind, unit)
        rigid = n.sum_of_products([n.direction(motion, direction) for motion in motions], weights)
        elastic = n.sum_of_products(away, [gradient[axis] for gradient in gradients])
        columns.append(n.direction(to_object, n.vector("MULTIPLY_ADD", elastic, eta, rigid)))
    return n.point(to_object, centre), n.matrix(columns), exists


def _moved(n: NodeBuilder, settings: DeformNodes, centre: Socket, jacobian: Socket) -> Socket:
    """Return whether the pose moves or bends a splat by more than rounding."""
    rest = n.one("GeometryNodeInputPosition")
    own = n.node("GeometryNodeObjectInfo", n.one("GeometryNodeSelfObject"), transform_space="ORIGINAL")
    origin = n.point(n.one("FunctionNodeInvertMatrix", own.outputs["Transform"]), (0.0, 0.0, 0.0))
    reach = n.math("ADD", n.vector_length(rest), n.math("ADD", n.vector_length(origin), settings.size))
    shift = n.one("ShaderNodeVectorMath", centre, rest, operation="DISTANCE")
    far = n.math("GREATER_THAN", shift, n.math("MULTIPLY", reach, STILL_POSITION))
    change = [
        n.one("ShaderNodeVectorMath", n.direction(jacobian, unit), unit, operation="DISTANCE")
        for unit in UNITS
    ]
    largest = n.math("MAXIMUM", change[0], n.math("MAXIMUM", change[1], change[2]))
    return n.math("MAXIMUM", far, n.math("GREATER_THAN", largest, STILL_SHAPE))


def _rest_shape(n: NodeBuilder) -> Socket:
    """Return Q diag(s) of the rest splat."""
    rotation = n.attribute("rotation", "QUATERNION")
    scale = n.attribute("scale", "FLOAT_VECTOR")
    return n.one("FunctionNodeCombineTransform", None, rotation, scale)


def _rotation(n: NodeBuilder, axes: Socket) -> Socket:
    """Return the rotation of orthonormal axes; a mirrored frame is reversed, which no covariance notices."""
    sign = n.one("FunctionNodeMatrixDeterminant", axes)
    proper = n.multiply(
        axes, n.one("FunctionNodeCombineTransform", None, None, n.vector("MULTIPLY", sign, (1.0,) * 3))
    )
    return n.node("FunctionNodeSeparateTransform", proper).outputs["Rotation"]
