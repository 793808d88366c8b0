"""The splats of all drawn objects in common textures, so that one order can interleave them.

Nothing here changes when bones move: poses come as uniforms with every draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, cast

import gpu
import numpy as np
from numpy.typing import NDArray

from ...core.cloud import GaussianCloud
from ...core.errors import RigError
from ...core.render.texture_layout import (
    COUNT_LIMIT,
    SH_TEXELS,
    as_table,
    compact_texels,
    exact_skin_texels,
    fitting_degree,
    paper10_texels,
    sh_texels,
    splat_texels,
)
from ...core.skinning.quantize import STATIC_BYTE, pack
from ...core.skinning.skin import Skin
from ...gpu_shaders import SkinLayout

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
SKIN_FORMATS = {"exact": "RGBA32F", "compact": "RGBA16", "paper10": "RGBA8"}
NO_TEXELS = np.zeros((0, 4), np.float32)


@dataclass(frozen=True)
class Source:
    """One object's splats at rest, and what moves them (None: nothing does)."""

    cloud: GaussianCloud
    skin: Skin | None = None


@dataclass(frozen=True)
class Span:
    """Where one object's splats lie in the atlas, and what the order of drawing needs of them.

    first : row in the tables
    sh_first, sh_degree : first texel and degree of its spherical harmonics
    centre : (3,) float64, c, about which everything is computed
    local : (N, 3) float32, rest positions about the centre
    radius : distance from the centre within which they lie
    skin : its skin, not quantised
    bone_count : how many bones the skin needs
    gradient_range : of the quantised gradients on the GPU
    """

    first: int
    sh_first: int
    sh_degree: int
    centre: F64
    local: F32
    radius: float
    skin: Skin | None
    bone_count: int = 0
    gradient_range: float = 0.0

    def __len__(self) -> int:
        return len(self.local)


@dataclass(frozen=True)
class Atlas:
    """Textures on the GPU and the spans of the objects in them.

    textures : by the shader's names
    layout, influences : how influences are stored; None and 1 where no object has any
    memory : bytes on the GPU
    notes : one sentence on each thing left out
    version : differs from atlas to atlas
    """

    spans: tuple[Span, ...]
    textures: dict[str, gpu.types.GPUTexture]
    layout: SkinLayout | None
    influences: int
    memory: int
    notes: tuple[str, ...] = ()
    version: int = field(default_factory=count(1).__next__)


def build_atlas(sources: Sequence[Source], layout: SkinLayout = "exact", limit: int | None = None) -> Atlas:
    """Upload the splats of some objects.

    Parameters
    ----------
    layout : of the influences; "paper10" keeps two of them
    limit : largest width and height of a texture; None: the device's

    Raises
    ------
    RigError : they do not fit on this device
    """
    limit = gpu.capabilities.max_texture_size_get() if limit is None else limit
    total = sum(len(source.cloud) for source in sources)
    if total > COUNT_LIMIT:
        raise RigError(f"The drawer holds {COUNT_LIMIT:,} splats, not {total:,}; use Native display")
    counts: dict[int, int] = {}
    for source in sources:
        counts[source.cloud.sh_degree] = counts.get(source.cloud.sh_degree, 0) + len(source.cloud)
    degree = fitting_degree(counts, limit)
    builder = _Builder(limit)
    notes = []
    if degree < max(counts, default=0):
        notes.append(f"Colours are drawn with degree {degree}: more does not fit into this device's textures")
    skins = [source.skin for source in sources if source.skin is not None]
    if layout != "exact" and any(skin.indices.max(initial=0) >= STATIC_BYTE for skin in skins):
        notes.append(f"Skins of more than {STATIC_BYTE} bones are stored exactly, not packed")
        layout = "exact"
    spans = _upload_splats(builder, sources, degree, layout)
    influences = max((skin.influences for skin in skins), default=0)
    if influences:
        influences, spans = _upload_skins(builder, spans, influences, layout)
    used = layout if influences else None
    return Atlas(spans, builder.textures, used, max(influences, 1), builder.memory, tuple(notes))


class _Builder:
    """Makes textures and counts their bytes."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.textures: dict[str, gpu.types.GPUTexture] = {}
        self.memory = 0

    def add(self, name: str, texels: F32, kind: str) -> None:
        """Upload texels (T, C) as a texture of that name."""
        self.textures[name] = upload(as_table(texels, self.limit), kind)
        bits = 32 if kind.endswith("32F") else 16 if "16" in kind else 8
        self.memory += texels.size * bits // 8


def upload(table: F32, kind: str) -> gpu.types.GPUTexture:
    """Return a texture (height, width, C) of that format."""
    height, width, _ = table.shape
    values = gpu.types.Buffer("FLOAT", table.size, cast(Any, table.ravel()))
    return gpu.types.GPUTexture((width, height), format=cast(Any, kind), data=values)


def _upload_splats(
    builder: _Builder, sources: Sequence[Source], degree: int, layout: SkinLayout
) -> tuple[Span, ...]:
    spans, first, sh_first = [], 0, 0
    splats, colours = [], []
    for source in sources:
        centre = _centre(source.cloud.positions)
        own = min(degree, source.cloud.sh_degree)
        skin = source.skin
        splats.append(splat_texels(source.cloud, centre, None if skin is None else skin.indices))
        colours.append(sh_texels(source.cloud, own))
        local = np.ascontiguousarray(splats[-1][::4, :3])
        bones = 0 if skin is None else int(skin.indices.max(initial=-1)) + 1
        spans.append(Span(first, sh_first, own, centre, local, _radius(local), skin, bones))
        first += len(source.cloud)
        sh_first += len(source.cloud) * SH_TEXELS[own]
    empty = np.zeros((1, 4), np.float32)
    builder.add("splat_table", np.concatenate([*splats, empty]), "RGBA32F")
    builder.add("sh_table", np.concatenate([*colours, empty]), "RGBA32F" if layout == "exact" else "RGBA16F")
    return tuple(spans)


def _upload_skins(
    builder: _Builder, spans: tuple[Span, ...], influences: int, layout: SkinLayout
) -> tuple[int, tuple[Span, ...]]:
    """Upload the skins; return how many influences are stored, and the spans with their quantisation."""
    if layout != "exact":
        influences = 2 if layout == "paper10" else max(influences, 2)
    heads, values, quantised = [], [], []
    for span in spans:
        head, value, reach = _skin_texels(span, influences, layout)
        heads.append(head)
        values.append(value)
        quantised.append(replace(span, gradient_range=reach))
    builder.add("skin_table", np.concatenate(values), SKIN_FORMATS[layout])
    if layout == "compact":
        builder.add("bone_table", np.concatenate(heads), "RG8" if influences == 2 else "RGBA8")
    return influences, tuple(quantised)


def _skin_texels(span: Span, influences: int, layout: SkinLayout) -> tuple[F32, F32, float]:
    """Return an object's texels of bones and of values, and the range of its gradients."""
    skin = span.skin
    if skin is None:  # never read, but rows must stay in step
        one = (len(span), 1)
        skin = Skin(np.zeros(one, np.int32), np.zeros(one, np.float32), np.zeros((*one, 3), np.float32))
    if layout == "exact":
        return NO_TEXELS, exact_skin_texels(skin, influences), 0.0
    packed = pack(skin, layout)
    if layout == "paper10":
        return NO_TEXELS, paper10_texels(packed), packed.gradient_range
    return *compact_texels(packed, influences), packed.gradient_range


def _centre(positions: F32) -> F64:
    finite = positions[np.isfinite(positions).all(axis=1)]
    return finite.mean(axis=0, dtype=np.float64) if len(finite) else np.zeros(3)


def _radius(local: F32) -> float:
    lengths = np.sqrt(np.einsum("ni,ni->n", local, local))
    return float(lengths[np.isfinite(lengths)].max(initial=0))
