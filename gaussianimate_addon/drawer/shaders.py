"""Shaders compiled once and kept; one message where a driver refuses one."""

from __future__ import annotations

import gpu

from ...core.errors import GaussiAnimateError
from ...core.render.projection import ALPHA_CUT, EDGE, LOW_PASS
from ...gpu_shaders import ARROW_FRAGMENT, ARROW_VERTEX, FRAGMENT, SplatVariant, source, vertex_source
from .gpu_objects import kept


class ShaderError(GaussiAnimateError):
    """A driver did not compile a shader."""


@kept
def splat_shader(variant: SplatVariant) -> gpu.types.GPUShader:
    """Return the shader that draws splats, compiled at the first call.

    Raises
    ------
    ShaderError : the driver refuses it; further calls try again
    """
    info = gpu.types.GPUShaderCreateInfo()
    interface = gpu.types.GPUStageInterfaceInfo("gaussianimate_splat")
    interface.smooth("VEC2", "offset")
    interface.flat("VEC2", "limit")
    interface.flat("VEC4", "tint")
    info.vertex_out(interface)
    info.fragment_out(0, "VEC4", "result")
    info.vertex_in(0, "VEC3", "corner")
    info.push_constant("INT", "drawn_count")
    declare(info, variant)
    info.vertex_source(vertex_source(variant))
    info.fragment_source(source(*FRAGMENT))
    return compile_shader(info)


@kept
def arrow_shader(variant: SplatVariant) -> gpu.types.GPUShader:
    """Return the shader that draws arrows along gradients; see :func:`splat_shader`."""
    info = gpu.types.GPUShaderCreateInfo()
    interface = gpu.types.GPUStageInterfaceInfo("gaussianimate_arrow")
    interface.flat("FLOAT", "shade")
    info.vertex_out(interface)
    info.fragment_out(0, "VEC4", "result")
    info.vertex_in(0, "VEC3", "part")
    declare(info, variant)
    info.vertex_source(source(*ARROW_VERTEX))
    info.fragment_source(source(*ARROW_FRAGMENT))
    return compile_shader(info)


def declare(info: gpu.types.GPUShaderCreateInfo, variant: SplatVariant) -> None:
    """Declare constants, uniform buffers and textures of a variant."""
    constants = {"LOW_PASS": LOW_PASS, "ALPHA_CUT": ALPHA_CUT, "EDGE": EDGE}
    for name, value in constants.items():
        info.define(name, repr(float(value)))
    for name, text in variant.defines.items():
        info.define(name, text)
    info.typedef_source(source("types"))
    for slot, (kind, name) in enumerate(variant.blocks):
        info.uniform_buf(slot, kind, name)
    for slot, name in enumerate(variant.samplers):
        info.sampler(slot, "FLOAT_2D", name)


def compile_shader(info: gpu.types.GPUShaderCreateInfo) -> gpu.types.GPUShader:
    """Compile a shader.

    Raises
    ------
    ShaderError : the driver refuses it
    """
    try:
        return gpu.shader.create_from_info(info)
    except Exception as error:  # Blender raises a bare Exception
        raise ShaderError(
            f"The graphics driver ({gpu.platform.renderer_get()}) did not compile the splat shader, so "
            f"splats are drawn natively; the console has its report ({error})"
        ) from None
