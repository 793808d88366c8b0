"""Geometry nodes that keep Blender's own renderers from drawing, in viewports, what the drawer draws.

Display As Bounds does that in solid and wireframe shading, but EEVEE and Cycles draw such objects all the
same. So splats become transparent in viewports (and points of 0 radius, where Blender has no splats). What
the drawer poses on the graphics card need not be posed by the deformer's nodes as well: of rigged splats only
a few pass, which keep the object's bounding box about the pose. Splats that nothing poses all pass, and carry
on what they looked like (`point_cloud.SEEN`).

Renders get every splat as it is, by the Is Viewport node.
"""

from __future__ import annotations

from typing import Any

import bpy

from ..attributes import has_attribute, splats
from ..modifiers import DEFORM, DISPLAY, add_modifier, find_modifier, remove_modifier
from ..node_builder import NodeBuilder, Socket
from ..point_cloud import BASE, SEEN

KEPT = 256  # splats at most twice as many; 200 of 100,000 come within 2 % of the bounding box
_KIND = "gaussianimate_display"  # custom property of the groups


def thin_out(object: bpy.types.Object, on: bool) -> None:
    """Let viewports see nothing of the object, and its deformer few splats; or again all."""
    rigged, with_radius = find_modifier(object, DEFORM) is not None, has_attribute(splats(object), "radius")
    kind = f"Viewport {'subset' if rigged else 'unseen'}{' of points' if with_radius else ''}"
    modifier: Any = find_modifier(object, DISPLAY)
    if modifier is not None and on and modifier.node_group.get(_KIND) != kind:
        remove_modifier(object, DISPLAY)
        modifier = None
    if modifier is None and on:
        modifier = add_modifier(object, DISPLAY, _group(kind, rigged, with_radius))
        modifier.show_expanded = False
    if modifier is None:
        return
    if modifier.show_viewport != on:
        modifier.show_viewport = on
    modifiers: Any = object.modifiers
    place = 0 if rigged else len(modifiers) - 1
    if modifiers[place] != modifier:
        modifiers.move(modifiers.find(modifier.name), place)


def _group(kind: str, rigged: bool, with_radius: bool) -> bpy.types.NodeTree:
    """Return the group, one for all objects of the file that need the same."""
    for group in bpy.data.node_groups:
        if group.get(_KIND) == kind and group.library is None:
            return group
    n = NodeBuilder(kind)
    n.input("Geometry", "Geometry")
    n.output("Geometry", "Geometry")
    geometry, _ = n.node("NodeGroupInput").outputs
    shown = _few(n, geometry) if rigged else _keep(n, geometry)
    shown = n.store(shown, BASE, "FLOAT_COLOR", n.one("FunctionNodeInputColor", value=(0, 0, 0, 0)))
    if with_radius:
        shown = n.store(shown, "radius", "FLOAT", 0.0)
    viewport = n.one("GeometryNodeIsViewport")
    n.node("NodeGroupOutput", n.one("GeometryNodeSwitch", viewport, geometry, shown, input_type="GEOMETRY"))
    n.arrange()
    n.tree[_KIND] = kind
    return n.tree


def _few(n: NodeBuilder, geometry: Socket) -> Socket:
    """Every so manieth splat, without extent: the deformer makes radii anew from that."""
    size = n.node("GeometryNodeAttributeDomainSize", geometry, component="POINTCLOUD")
    step = n.integer("MAXIMUM", n.integer("DIVIDE", size.outputs["Point Count"], KEPT), 1)
    place = n.integer("MODULO", n.one("GeometryNodeInputIndex"), step)
    dropped = n.one("FunctionNodeCompare", place, 0, data_type="INT", operation="NOT_EQUAL")
    few = n.one("GeometryNodeDeleteGeometry", geometry, dropped, domain="POINT")
    return n.store(few, "scale", "FLOAT_VECTOR", (0.0, 0.0, 0.0))


def _keep(n: NodeBuilder, geometry: Socket) -> Socket:
    return n.store(geometry, SEEN, "FLOAT_COLOR", n.attribute(BASE, "FLOAT_COLOR"))
