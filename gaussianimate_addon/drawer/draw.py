"""Draw one view of an atlas into the framebuffer that is bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from typing import Any, cast

import gpu
import numpy as np
from numpy.typing import NDArray

from ...core.deform.svd3 import polar_rotation
from ...core.errors import RigError
from ...core.render.camera import Camera
from ...core.render.texture_layout import COUNT_LIMIT, as_table
from ...core.rotations import affine_multiply
from ...gpu_shaders import BATCH, BONE_CAPACITIES, MAX_ITEMS, SplatVariant
from .atlas import Atlas, upload
from .gpu_objects import kept
from .shaders import splat_shader

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]

_VIEW = np.dtype(
    [("projection", "f4", (4, 4)), ("viewport", "f4", 4), ("shading", "f4", 4), ("counts", "i4", 4)]
)
_ITEM = np.dtype(
    [
        ("to_view", "f4", (4, 4)),
        ("turn", "f4", (4, 4)),
        ("scales", "f4", 4),
        ("rows", "i4", 4),
        ("bones", "i4", 4),
    ]
)
_BROKEN = np.float32(1e30)  # metres, by which the shader knows such bones


class Show(IntEnum):
    """What colours stand for; the numbers are the shader's."""

    COLOUR = 0
    WEIGHT = 1
    STRETCH = 2
    DEPTH = 3


@dataclass(frozen=True)
class Shading:
    """How splats are drawn.

    elastic : factor on every object's elastic strength; 0 leaves out the gradients of the weights
    scene_linear : convert colours from sRGB, for buffers that the view transform is still applied to
    outlines : draw a ring at two standard deviations
    mark_unweighted : show splats that no bone holds in magenta
    gradients : draw arrows along the gradients of the marked bones' weights (`gradient_arrows`)
    solid : draw only what is at least half opaque, which is what hides things behind it
    deform : False draws the rest pose by the shader without skinning
    """

    show: Show = Show.COLOUR
    elastic: float = 1.0
    scene_linear: bool = False
    outlines: bool = False
    mark_unweighted: bool = False
    gradients: bool = False
    solid: bool = False
    deform: bool = True


@dataclass(frozen=True)
class Item:
    """One appearance of an atlas' object in a scene: instances share a span.

    span : number of the span
    matrix : (4, 4) float64, to world space
    transforms : (B, 3, 4) float64, rest to posed in the object's space; None at rest
    elastic : eta of the object
    marks : (B,) how strongly the weight overlay shows each bone; None: not
    """

    span: int
    matrix: F64
    transforms: F64 | None = None
    elastic: float = 1.0
    marks: F32 | None = None


@dataclass(frozen=True)
class Frame:
    """Uniforms of one view, ready to be bound, and the order to draw in.

    order : row numbers of all items, one after the other
    mask : (rows of the atlas,) what a gesture selects, shown over the colours; None: there is none
    """

    camera: gpu.types.GPUUniformBuf
    items: gpu.types.GPUUniformBuf
    order: gpu.types.GPUTexture
    count: int
    bones: Bones | None = field(default=None)
    mask: gpu.types.GPUTexture | None = None


@dataclass(frozen=True)
class Bones:
    """Motions of the bones of all items on the GPU; ``capacity`` 0 means a texture."""

    data: gpu.types.GPUUniformBuf | gpu.types.GPUTexture
    capacity: int


def bone_moves(atlas: Atlas, items: Sequence[Item]) -> list[F32]:
    """Return for each item ``[A - 1 | A c + t - c]`` of its bones, (B, 3, 4); (0, 3, 4) at rest.

    Raises
    ------
    RigError : an item has fewer transforms than its skin has bones
    """
    moves = []
    for item in items:
        span = atlas.spans[item.span]
        if item.transforms is None or span.skin is None:
            moves.append(np.zeros((0, 3, 4), np.float32))
            continue
        move = np.array(item.transforms, np.float64)
        if len(move) < span.bone_count:
            raise RigError(
                f"The skin names bone {span.bone_count - 1}, but there are only {len(move)} bone transforms; "
                "build the rig again"
            )
        offset = move[:, :, 3]
        move[:, :, :3] -= np.eye(3)
        with np.errstate(invalid="ignore"):  # splats of bones that are not finite stay at rest
            move[:, :, 3] = move[:, :, :3] @ span.centre + offset
            moves.append(move.astype(np.float32))
    return moves


def upload_bones(moves: Sequence[F32], items: Sequence[Item]) -> Bones | None:
    """Upload the motions of `bone_moves` with their marks; None where there are no bones.

    Motions that are not finite become enormous translations, which the shader knows.
    """
    count = sum(len(move) for move in moves)
    if not count:
        return None
    capacity = next((size for size in BONE_CAPACITIES if size >= count), 0)
    rows = np.zeros((capacity or count, 4, 4), np.float32)
    np.concatenate(moves, out=rows[:count, :3])
    broken = ~np.isfinite(rows).all(axis=(1, 2))
    rows[broken, :3] = 0, 0, 0, _BROKEN
    first = 0
    for move, item in zip(moves, items, strict=True):
        if item.marks is not None and len(move):
            rows[first : first + len(move), 3, 0] = item.marks
        first += len(move)
    if capacity:
        return Bones(_uniforms(rows), capacity)
    limit = gpu.capabilities.max_texture_size_get()
    return Bones(upload(as_table(rows.reshape(-1, 4), limit), "RGBA32F"), 0)


def upload_items(
    atlas: Atlas, items: Sequence[Item], moves: Sequence[F32], camera: Camera
) -> gpu.types.GPUUniformBuf:
    """Upload where each item stands as the camera sees it, and where its data lie.

    Raises
    ------
    RigError : more items, or more splats in them, than can be drawn together
    """
    if len(items) > MAX_ITEMS:
        raise RigError(
            f"The drawer shows {MAX_ITEMS} splat objects and instances at once, not {len(items)}; "
            "hide some, join some, or use Native display"
        )
    shown = sum(len(atlas.spans[item.span]) for item in items)
    if shown > COUNT_LIMIT:
        raise RigError(
            f"The drawer shows {COUNT_LIMIT:,} splats at once, not {shown:,}; hide some objects or "
            "instances, or use Native display"
        )
    rows = np.zeros(MAX_ITEMS, _ITEM)
    drawn = bone = 0
    linears = np.array([item.matrix[:3, :3] for item in items]).reshape(-1, 3, 3)
    rotations = _rotations(linears.astype(np.float64).tobytes())
    for row, item, move, rotation in zip(rows[: len(items)], items, moves, rotations, strict=True):
        span = atlas.spans[item.span]
        to_view = np.eye(4)
        to_view[:3] = affine_multiply(camera.view[:3], item.matrix[:3])
        turn = np.eye(4)
        turn[:3, :3] = camera.view[:3, :3] @ rotation
        to_view[:3, 3] += to_view[:3, :3] @ span.centre
        row["to_view"], row["turn"] = to_view.T, turn.T
        row["scales"][:3] = span.gradient_range, item.elastic, span.radius
        row["rows"] = drawn, span.first, span.sh_first, span.sh_degree
        row["bones"][:2] = bone, len(move)
        drawn, bone = drawn + len(span), bone + len(move)
    return _uniforms(rows)


@lru_cache(maxsize=16)
def _rotations(matrices: bytes) -> F64:
    """Return the nearest rotations of 3x3 matrices; they take longest, and change only with the objects."""
    return cast(F64, polar_rotation(np.frombuffer(matrices, np.float64).reshape(-1, 3, 3)))


def upload_camera(camera: Camera, shading: Shading, count: int) -> gpu.types.GPUUniformBuf:
    """Upload the projection and how to shade."""
    view = np.zeros((), _VIEW)
    view["projection"] = camera.projection.T
    largest = np.hypot(camera.width, camera.height)
    view["viewport"] = camera.width, camera.height, largest, not camera.is_perspective
    view["shading"] = shading.elastic, shading.show, shading.scene_linear, shading.outlines
    view["counts"][:3] = count, shading.mark_unweighted, shading.solid
    return _uniforms(view)


def _uniforms(values: NDArray[Any]) -> gpu.types.GPUUniformBuf:
    """Upload values that lie as std140 has them."""
    return gpu.types.GPUUniformBuf(cast(Any, values.tobytes()))  # the stubs know no bytes


def upload_order(order: NDArray[np.integer]) -> gpu.types.GPUTexture:
    """Upload the row numbers of splats, the farthest first."""
    limit = gpu.capabilities.max_texture_size_get()
    return upload(as_table(order.astype(np.float32)[:, None], limit), "R32F")


def draw_frame(atlas: Atlas, frame: Frame, shading: Shading) -> None:
    """Draw into the bound framebuffer, premultiplied over what is there; the caller sets the depth test."""
    if not frame.count:
        return
    deforms = shading.deform and atlas.layout is not None and frame.bones is not None
    masked = frame.mask is not None
    variant = SplatVariant(mask=masked)
    if deforms:
        variant = SplatVariant(atlas.layout, atlas.influences, frame.bones.capacity, mask=masked)
    shader = splat_shader(variant)
    blend: Any = gpu.state.blend_get()
    gpu.state.blend_set("ALPHA_PREMULT")
    try:
        bind_frame(shader, variant, atlas, frame)
        shader.uniform_int("drawn_count", frame.count)
        _triangles().draw_instanced(shader, instance_count=-(-frame.count // BATCH))
    finally:
        gpu.state.blend_set(blend)


def bind_frame(shader: gpu.types.GPUShader, variant: SplatVariant, atlas: Atlas, frame: Frame) -> None:
    """Bind a shader of that variant with everything that it reads."""
    shader.bind()
    shader.uniform_block("camera", frame.camera)
    shader.uniform_block("items", frame.items)
    textures: dict[str, Any] = {**atlas.textures, "order_table": frame.order}
    if variant.layout is not None and frame.bones is not None:
        if variant.bones:
            shader.uniform_block("bones", cast(Any, frame.bones.data))
        textures["bones_table"] = frame.bones.data
    textures["mask_table"] = frame.mask
    for name in variant.samplers:
        shader.uniform_sampler(name, textures[name])


@kept
def _triangles() -> gpu.types.GPUBatch:
    """A batch of splats: the corners of a triangle about the unit circle, and which of the splats it is."""
    layout = gpu.types.GPUVertFormat()
    layout.attr_add(id="corner", comp_type="F32", len=3, fetch_mode="FLOAT")
    corners = np.empty((BATCH, 3, 3), np.float32)
    corners[..., :2] = (-(3**0.5), -1), (3**0.5, -1), (0, 2)
    corners[..., 2] = np.arange(BATCH)[:, None]
    vertices: Any = gpu.types.GPUVertBuf(layout, 3 * BATCH)
    vertices.attr_fill("corner", corners.reshape(-1, 3))
    return gpu.types.GPUBatch(type="TRIS", buf=vertices)
