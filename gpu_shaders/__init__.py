"""The shaders of the drawer: GLSL files, and what they expect to be given.

Sources are written for Blender's create-info interface, which declares every input, so that one source
compiles for OpenGL, Vulkan and Metal. For the last, which Blender translates to, there are no global
constants, constructors of structures, outer products, quotients of matrices or comparisons of vectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

SkinLayout = Literal["exact", "compact", "paper10"]
BONE_CAPACITIES = (256, 1024)  # of uniform buffers of 16 KB, which every device has, and of 64 KB
MAX_ITEMS = 64
BATCH = 1024  # splats drawn as one instance
VERTEX = ("tables", "linear", "skinning", "harmonics", "projection", "colours", "items", "splat_vert")
FRAGMENT = ("splat_frag",)
ARROW_VERTEX = ("tables", "linear", "skinning", "items", "arrow_vert")
ARROW_FRAGMENT = ("arrow_frag",)


@dataclass(frozen=True)
class SplatVariant:
    """One way to compile the splat shader.

    layout : how influences are stored, None to draw without deformation
    influences : K, 1-4
    bones : capacity of the uniform buffer of bones, 0 where they lie in a texture
    colours : whether the spherical harmonics are read
    mask : whether a mask is shown over the colours, as a heat map
    """

    layout: SkinLayout | None = None
    influences: int = 1
    bones: int = BONE_CAPACITIES[0]
    colours: bool = True
    mask: bool = False

    @property
    def defines(self) -> dict[str, str]:
        """Preprocessor names and values."""
        names = {"MAX_ITEMS": str(MAX_ITEMS), "BATCH": str(BATCH)}
        if self.mask:
            names["MASK"] = ""
        if self.layout is None:
            return names
        names |= {"DEFORM": "", f"SKIN_{self.layout.upper()}": "", "INFLUENCES": str(self.influences)}
        return names if self.bones else names | {"BONES_IN_TABLE": ""}

    @property
    def samplers(self) -> tuple[str, ...]:
        """Names of the textures, in the order of their slots; all are sampled as floats."""
        names = ["order_table", "splat_table"]
        if self.colours:
            names.append("sh_table")
        if self.layout is not None:
            names.append("skin_table")
            if self.layout == "compact":
                names.append("bone_table")
            if not self.bones:
                names.append("bones_table")
        if self.mask:
            names.append("mask_table")
        return tuple(names)

    @property
    def blocks(self) -> tuple[tuple[str, str], ...]:
        """Type and name of the uniform buffers, in the order of their slots."""
        blocks = [("CameraBlock", "camera"), ("Item", f"items[{MAX_ITEMS}]")]
        if self.layout is not None and self.bones:
            blocks.append(("Bone", f"bones[{self.bones}]"))
        return tuple(blocks)


@cache
def source(*names: str) -> str:
    """Return GLSL files of these names, one after the other."""
    folder = Path(__file__).parent
    return "\n".join((folder / f"{name}.glsl").read_text(encoding="utf-8") for name in names)


def vertex_source(variant: SplatVariant) -> str:
    """Return the vertex stage; without deformation the skinning of influences is left out."""
    if variant.layout is not None:
        return source(*VERTEX)
    return source(*(name if name != "skinning" else "rest" for name in VERTEX))
