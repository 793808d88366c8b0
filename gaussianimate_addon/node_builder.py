"""Build geometry-nodes groups by script: sockets in, sockets out, and a tidy layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import bpy

Socket = bpy.types.NodeSocket
Value = Any  # a socket to link, or a constant for the input's default value

# Item type of a Capture Attribute node -> what each kind of value is stored as.
VECTOR, ROTATION, BOOLEAN, MATRIX, FLOAT = "VECTOR", "ROTATION", "BOOLEAN", "MATRIX", "FLOAT"


class NodeBuilder:
    """Thin wrapper of a node tree: every method adds a node and returns its output socket(s)."""

    def __init__(self, name: str) -> None:
        self.tree: Any = bpy.data.node_groups.new(name, "GeometryNodeTree")

    def input(self, name: str, kind: str, **settings: Any) -> None:
        """Add an interface input; settings are its properties (``default_value``, ``min_value``, ...)."""
        self._interface(name, "INPUT", kind, settings)

    def output(self, name: str, kind: str) -> None:
        """Add an interface output."""
        self._interface(name, "OUTPUT", kind, {})

    def _interface(self, name: str, direction: str, kind: str, settings: dict[str, Any]) -> None:
        item = self.tree.interface.new_socket(name, in_out=direction, socket_type=f"NodeSocket{kind}")
        for key, value in settings.items():
            setattr(item, key, value)

    def node(self, kind: str, *inputs: Value, **settings: Any) -> Any:
        """Add a node, set its properties, then feed its enabled inputs in order (None: leave alone)."""
        node = self.tree.nodes.new(kind)
        for key, value in settings.items():
            setattr(node, key, value)
        sockets = [socket for socket in node.inputs if socket.enabled]
        for socket, value in zip(sockets, inputs, strict=False):
            self.feed(socket, value)
        return node

    def feed(self, socket: Socket, value: Value) -> None:
        """Link a socket to an input, or set its constant."""
        if isinstance(value, Socket):
            self.tree.links.new(value, socket)
        elif value is not None:
            socket.default_value = value  # type: ignore[attr-defined]

    def one(self, kind: str, *inputs: Value, **settings: Any) -> Socket:
        """Add a node and return its first enabled output."""
        return next(s for s in self.node(kind, *inputs, **settings).outputs if s.enabled)

    def math(self, operation: str, *inputs: Value) -> Socket:
        """Scalar maths."""
        return self.one("ShaderNodeMath", *inputs, operation=operation)

    def integer(self, operation: str, *inputs: Value) -> Socket:
        """Integer maths, exact where floats no longer count points one by one (above 2^24)."""
        return self.one("FunctionNodeIntegerMath", *inputs, operation=operation)

    def vector(self, operation: str, *inputs: Value) -> Socket:
        """Vector maths; a scalar linked to a vector input stands for (x, x, x)."""
        return self.one("ShaderNodeVectorMath", *inputs, operation=operation)

    def vector_length(self, vector: Socket) -> Socket:
        """Length of a vector."""
        return self.one("ShaderNodeVectorMath", vector, operation="LENGTH")

    def sum_of_products(self, vectors: Sequence[Value], factors: Sequence[Value]) -> Socket:
        """Return sum_i vectors[i] * factors[i]."""
        total = self.vector("MULTIPLY", vectors[0], factors[0])
        for vector, factor in zip(vectors[1:], factors[1:], strict=True):
            total = self.vector("MULTIPLY_ADD", vector, factor, total)
        return total

    def xyz(self, vector: Socket) -> tuple[Socket, Socket, Socket]:
        """Split a vector."""
        x, y, z = self.node("ShaderNodeSeparateXYZ", vector).outputs
        return x, y, z

    def matrix(self, columns: Sequence[Socket]) -> Socket:
        """Return the 3x3 matrix of three column vectors."""
        node = self.tree.nodes.new("FunctionNodeCombineMatrix")
        for c, column in enumerate(columns):
            for r, value in enumerate(self.xyz(column)):
                self.feed(node.inputs[4 * c + r], value)
        return node.outputs[0]

    def multiply(self, left: Socket, right: Socket) -> Socket:
        """Return the matrix product."""
        return self.one("FunctionNodeMatrixMultiply", left, right)

    def direction(self, matrix: Socket, vector: Value) -> Socket:
        """Return the linear part of ``matrix`` times ``vector``."""
        return self.one("FunctionNodeTransformDirection", vector, matrix)

    def point(self, matrix: Socket, vector: Value) -> Socket:
        """Return the affine ``matrix`` applied to a point."""
        return self.one("FunctionNodeTransformPoint", vector, matrix)

    def attribute(self, name: str, kind: str) -> Socket:
        """Read a named attribute."""
        return self.one("GeometryNodeInputNamedAttribute", name, data_type=kind)

    def store(self, geometry: Socket, name: str, kind: str, value: Value, selection: Value = None) -> Socket:
        """Store a named attribute on the selected points; the others keep their bits."""
        node = self.node("GeometryNodeStoreNamedAttribute", geometry, selection, name, value, data_type=kind)
        return node.outputs[0]

    def capture(self, geometry: Socket, **fields: tuple[str, Socket]) -> tuple[Socket, dict[str, Socket]]:
        """Evaluate fields once, together; returns the geometry and the results by name."""
        node = self.tree.nodes.new("GeometryNodeCaptureAttribute")
        for name, (kind, _) in fields.items():
            node.capture_items.new(kind, name)
        self.feed(node.inputs["Geometry"], geometry)
        for name, (_, field) in fields.items():
            self.feed(node.inputs[name], field)
        return node.outputs["Geometry"], {name: node.outputs[name] for name in fields}

    def arrange(self) -> None:
        """Place every node right of those that feed it."""
        depth: dict[str, int] = {}
        feeders: dict[str, list[Any]] = {node.name: [] for node in self.tree.nodes}
        for link in self.tree.links:
            feeders[link.to_node.name].append(link.from_node)
        stack = list(self.tree.nodes)
        while stack:
            node = stack[-1]
            waiting = [n for n in feeders[node.name] if n.name not in depth]
            if waiting:
                stack.extend(waiting)
                continue
            stack.pop()
            depth[node.name] = 1 + max((depth[n.name] for n in feeders[node.name]), default=-1)
        rows: dict[int, int] = {}
        for node in self.tree.nodes:
            column = depth[node.name]
            node.location = (220.0 * column, -180.0 * rows.get(column, 0))
            rows[column] = rows.get(column, 0) + 1
