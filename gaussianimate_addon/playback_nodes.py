"""Playback of captured frames as geometry nodes: splat i shows row ``frame * N + i`` of the stored frames."""

from __future__ import annotations

from collections.abc import Iterable

import bpy

from .capture_frames import SHOWN, VARYING
from .node_builder import NodeBuilder, Socket

# Types of attributes as nodes pass them on: no socket carries a FLOAT4, but a colour is four floats as well,
# and Blender's renderers take ``radiance:base`` in either form.
_SAMPLED = {"QUATERNION": "QUATERNION", "FLOAT_VECTOR": "FLOAT_VECTOR", "FLOAT4": "FLOAT_COLOR"}


def build_playback_group(name: str, varying: Iterable[str], with_gaps: bool) -> bpy.types.NodeTree:
    """Return a new group that replaces the attributes that vary by those of the scene's frame.

    Its inputs: Frames (the object that holds them), Start Frame (scene frame of frame 0), Frame Step (scene
    frames a captured frame lasts). Before the first and after the last frame these are held.

    Parameters
    ----------
    varying : names of stored attributes besides position
    with_gaps : some frames show nothing
    """
    n = NodeBuilder(name)
    n.input("Geometry", "Geometry")
    n.input("Frames", "Object", description="The captured frames; in no collection, but saved with the file")
    n.input("Start Frame", "Float", default_value=1.0, description="Scene frame that shows the first frame")
    n.input(
        "Frame Step", "Float", default_value=1.0, min_value=0.001, description="Scene frames a frame lasts"
    )
    n.output("Geometry", "Geometry")
    geometry, holder, start, step, _ = n.node("NodeGroupInput").outputs
    frames = n.node("GeometryNodeObjectInfo", holder).outputs["Geometry"]
    row = _row(n, geometry, frames, start, step)

    def sample(field: Socket, kind: str) -> Socket:
        return n.one("GeometryNodeSampleIndex", frames, field, row, data_type=kind)

    result = n.one(
        "GeometryNodeSetPosition", geometry, None, sample(n.one("GeometryNodeInputPosition"), "FLOAT_VECTOR")
    )
    for attribute in varying:
        kind = _SAMPLED[VARYING[attribute]]
        value = sample(n.attribute(attribute, kind), kind)
        result = n.store(result, attribute, kind, value)
    if with_gaps:
        empty = n.one(
            "FunctionNodeBooleanMath", sample(n.attribute(SHOWN, "BOOLEAN"), "BOOLEAN"), operation="NOT"
        )
        result = n.one("GeometryNodeDeleteGeometry", result, empty, domain="POINT")
    n.node("NodeGroupOutput", result)
    n.arrange()
    return n.tree


def _row(n: NodeBuilder, geometry: Socket, frames: Socket, start: Socket, step: Socket) -> Socket:
    """Return clamp(round((scene frame - start) / step), 0, F - 1) * N + index, in whole numbers."""
    now = n.node("GeometryNodeInputSceneTime").outputs["Frame"]
    nearest = n.math("DIVIDE", n.math("SUBTRACT", now, start), step)
    frame = n.one("FunctionNodeFloatToInt", nearest, rounding_mode="ROUND")
    points, stored = (
        n.node("GeometryNodeAttributeDomainSize", g, component="POINTCLOUD").outputs["Point Count"]
        for g in (geometry, frames)
    )
    last = n.integer("SUBTRACT", n.integer("DIVIDE", stored, points), 1)
    frame = n.integer("MAXIMUM", n.integer("MINIMUM", frame, last), 0)
    return n.integer("MULTIPLY_ADD", frame, points, n.one("GeometryNodeInputIndex"))
