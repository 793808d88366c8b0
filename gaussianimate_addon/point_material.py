"""The material that shows splats as coloured points where Blender cannot draw splats (5.2)."""

from __future__ import annotations

from typing import Any

import bpy

NAME = "GaussiAnimate points"
_C0 = 0.28209479177387814  # Y_0^0: colour = 0.5 + C0 * f_dc


def point_material() -> bpy.types.Material:
    """Return the shared material (made on first use): base colour emitted, opacity as alpha.

    f_dc gives display (sRGB) colours, the renderer works in scene-linear ones: a gamma of 2.2 converts.
    """
    found = bpy.data.materials.get(NAME)
    if found is not None:
        return found
    material = bpy.data.materials.new(NAME)
    tree: Any = material.node_tree
    tree.nodes.clear()
    links = tree.links
    base = tree.nodes.new("ShaderNodeAttribute")
    base.attribute_name = "radiance:base"
    colour = tree.nodes.new("ShaderNodeVectorMath")
    colour.operation = "MULTIPLY_ADD"
    colour.inputs[1].default_value = (_C0,) * 3
    colour.inputs[2].default_value = (0.5,) * 3
    clamp = tree.nodes.new("ShaderNodeVectorMath")
    clamp.operation = "MAXIMUM"
    clamp.inputs[1].default_value = (0.0,) * 3
    linear = tree.nodes.new("ShaderNodeGamma")
    linear.inputs["Gamma"].default_value = 2.2
    emission = tree.nodes.new("ShaderNodeEmission")
    output = tree.nodes.new("ShaderNodeOutputMaterial")
    links.new(base.outputs["Vector"], colour.inputs[0])
    links.new(colour.outputs[0], clamp.inputs[0])
    links.new(clamp.outputs[0], linear.inputs["Color"])
    links.new(linear.outputs[0], emission.inputs["Color"])
    links.new(emission.outputs[0], output.inputs["Surface"])
    for i, node in enumerate(tree.nodes):
        node.location = (200.0 * i, 0.0)
    return material
