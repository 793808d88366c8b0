"""Every way to compile the splat shader, and what is said where a driver refuses."""

import gpu
import pytest

from gaussianimate.core.errors import GaussiAnimateError
from gaussianimate.gaussianimate_addon.drawer.shaders import ShaderError, compile_shader, splat_shader
from gaussianimate.gpu_shaders import BONE_CAPACITIES, SplatVariant, source

pytestmark = pytest.mark.usefixtures("device")

VARIANTS = [SplatVariant()] + [
    SplatVariant(layout, influences, bones)
    for layout, counts in (("exact", (1, 2, 3, 4)), ("compact", (2, 3, 4)), ("paper10", (2,)))
    for influences in counts
    for bones in (*BONE_CAPACITIES, 0)
]


def name_of(variant):
    return f"{variant.layout}-{variant.influences}-{variant.bones or 'texture'}"


@pytest.mark.parametrize("variant", VARIANTS, ids=name_of)
def test_every_variant_compiles_once(variant):
    shader = splat_shader(variant)
    assert isinstance(shader, gpu.types.GPUShader)
    assert splat_shader(variant) is shader
    assert len(variant.samplers) <= 16, "what every device has in a vertex stage"


def small_shader(fragment):
    info = gpu.types.GPUShaderCreateInfo()
    info.vertex_in(0, "VEC2", "corner")
    info.fragment_out(0, "VEC4", "result")
    info.vertex_source("void main() { gl_Position = vec4(corner, 0.0, 1.0); }")
    info.fragment_source(fragment)
    return info


def test_a_shader_the_driver_refuses_gives_one_sentence():
    assert compile_shader(small_shader("void main() { result = vec4(1.0); }"))
    with pytest.raises(ShaderError, match="did not compile the splat shader") as raised:
        compile_shader(small_shader("void main() { result = no_such_function(1.0); }"))
    message = str(raised.value)
    assert isinstance(raised.value, GaussiAnimateError)
    assert "\n" not in message
    assert gpu.platform.renderer_get() in message
    assert "drawn natively" in message


def test_a_failure_is_not_kept(monkeypatch):
    """A driver may refuse for lack of memory, once."""
    from gaussianimate.gaussianimate_addon.drawer import shaders

    variant = SplatVariant("exact", 2, 256)
    shaders.splat_shader.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(shaders, "vertex_source", lambda variant: source("tables") + "\nvoid main() { oops }")
        with pytest.raises(ShaderError):
            shaders.splat_shader(variant)
    assert isinstance(shaders.splat_shader(variant), gpu.types.GPUShader)
