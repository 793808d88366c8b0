"""Starting weights: read from Blender what they are made of, and make them without Blender."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import bpy
import numpy as np
from numpy.typing import NDArray

from ...core.errors import RigError
from ...core.progress import Progress, no_progress
from ...core.skinning.skin import STATIC, Skin, make_skin
from ..armature import SKIN_BONE, indexed_bones
from ..attributes import read_attribute, splats
from ..deformer import bind_matrix
from ..skin_attributes import BASE, SKIN, has_gradients, influence_count, read_influences, read_skin
from .layers import empty_skin

Method = Literal["HEAT", "ENVELOPE", "PROXY", "CAPTURE", "EMPTY"]
F64 = NDArray[np.float64]
CHUNK = 16384


@dataclass(frozen=True)
class BoneLines:
    """Deform bones in armature space: (M, 3) heads and tails, (M,) radii, reach and strength of envelopes."""

    heads: F64
    tails: F64
    head_radii: F64
    tail_radii: F64
    distances: F64
    strengths: F64


@dataclass(frozen=True)
class ProxyMesh:
    """A mesh and what its vertex groups weigh: (V, 3), (T, 3), (V, M); object space of splats -> its own."""

    vertices: F64
    triangles: NDArray[np.intp]
    weights: F64
    from_splats: F64


@dataclass(frozen=True)
class BindTask:
    """All that starting weights are made of.

    positions : (N, 3) of the splats, object space
    bind : (4, 4) object to armature space
    present : the weights the splats have, where the method keeps them
    estimate : whether gradients are estimated for them, as another tool wrote weights alone
    successors : (B,) the bone that takes over from each bone of ``present``
    """

    method: Method
    positions: F64
    bind: F64
    bones: BoneLines
    proxy: ProxyMesh | None = None
    present: Skin | None = None
    estimate: bool = False
    successors: NDArray[np.int32] | None = None


def read_bones(bones: list[bpy.types.Bone]) -> BoneLines:
    """Read the rest pose of bones and their envelopes."""

    def column(name: str) -> F64:
        return np.array([getattr(bone, name) for bone in bones], np.float64)

    return BoneLines(
        column("head_local"),
        column("tail_local"),
        column("head_radius"),
        column("tail_radius"),
        column("envelope_distance"),
        column("envelope_weight"),
    )


def read_task(
    object: bpy.types.Object,
    armature: bpy.types.Object,
    bones: list[bpy.types.Bone],
    method: Method,
    proxy: bpy.types.Object | None = None,
) -> BindTask:
    """Read what the method needs.

    Parameters
    ----------
    bones : the deform bones, by their numbers
    proxy : mesh for "PROXY"; None takes the first one that the armature deforms

    Raises
    ------
    RigError : there is no proxy mesh, it has no weights of these bones, or no weights of a capture
    """
    lines, bind = read_bones(bones), bind_matrix(object, armature)
    positions = read_attribute(splats(object), "position").astype(np.float64)
    mesh = present = successors = None
    estimate = False
    if method == "PROXY":
        mesh = _read_proxy(object, proxy or _deformed_mesh(armature), [bone.name for bone in bones])
    elif method == "CAPTURE":
        present, estimate = _present_skin(object)
        successors = _successors(object, armature, present, positions, lines, bind)
    return BindTask(method, positions, bind, lines, mesh, present, estimate, successors)


def _deformed_mesh(armature: bpy.types.Object) -> bpy.types.Object:
    for object in bpy.data.objects:
        modifiers: Any = object.modifiers
        if object.type == "MESH" and any(m.type == "ARMATURE" and m.object == armature for m in modifiers):
            return object
    raise RigError(f"'{armature.name}' deforms no mesh; bind a proxy mesh to it first, or name one")


def _read_proxy(object: bpy.types.Object, proxy: bpy.types.Object, names: list[str]) -> ProxyMesh:
    if proxy.type != "MESH":
        raise RigError(f"'{proxy.name}' is no mesh; choose the proxy mesh that the armature deforms")
    mesh = cast(bpy.types.Mesh, proxy.data)
    numbers = {group.index: names.index(group.name) for group in proxy.vertex_groups if group.name in names}
    if not numbers:
        raise RigError(f"'{proxy.name}' has no vertex group of a deform bone; weigh it by the armature first")
    vertices, weights = np.empty((len(mesh.vertices), 3)), np.zeros((len(mesh.vertices), len(names)))
    mesh.vertices.foreach_get("co", vertices.ravel())
    if not np.isfinite(vertices).all():
        raise RigError(f"'{proxy.name}' has vertices whose positions are not finite; delete them first")
    for vertex in mesh.vertices:
        for member in vertex.groups:
            if member.group in numbers:
                weights[vertex.index, numbers[member.group]] = member.weight
    mesh.calc_loop_triangles()
    triangles = np.empty((len(mesh.loop_triangles), 3), np.int32)
    mesh.loop_triangles.foreach_get("vertices", triangles.ravel())
    if abs(proxy.matrix_world.determinant()) < 1e-18:
        raise RigError(f"'{proxy.name}' is scaled to nothing; give it a scale other than 0")
    from_splats = np.linalg.inv(np.array(proxy.matrix_world, np.float64)) @ np.array(object.matrix_world)
    return ProxyMesh(vertices, triangles.astype(np.intp), weights, from_splats)


def _present_skin(object: bpy.types.Object) -> tuple[Skin, bool]:
    """Return the weights there are, and whether they lack gradients."""
    data, kind = splats(object), standing_kind(object)
    if not influence_count(data, kind):
        raise RigError(f"'{object.name}' has no weights of a capture; build its rig first, or choose another")
    if has_gradients(data, kind):
        return read_skin(data, kind), False
    indices, weights = read_influences(data, kind)
    return Skin(indices, weights, np.zeros((*weights.shape, 3), np.float32)), True


def standing_kind(object: bpy.types.Object) -> str:
    """Return which weights of splats no layers have made: those that layers start from, or their own."""
    return BASE if influence_count(splats(object), BASE) else SKIN


def _successors(
    object: bpy.types.Object,
    armature: bpy.types.Object,
    skin: Skin,
    positions: F64,
    lines: BoneLines,
    bind: F64,
) -> NDArray[np.int32]:
    """Return for each bone of the present weights the one that takes over.

    On the same armature it is the bone itself, on another the one nearest to the middle of what it holds.
    """
    from ...core.skinning.bone_heat import bone_distances
    from ..deformer import deformer_armature

    count = int(skin.indices.max(initial=STATIC)) + 1
    if deformer_armature(object) == armature and count <= len(indexed_bones(armature, SKIN_BONE)):
        return np.arange(count, dtype=np.int32)
    held = np.zeros((count, 4))
    placed = np.column_stack([positions, np.ones(len(positions))]) @ bind.T
    for bones, weights in zip(skin.indices.T, skin.weights.T.astype(np.float64), strict=True):
        rows = (bones >= 0) & np.isfinite(placed).all(axis=1)
        np.add.at(held, bones[rows], weights[rows, None] * placed[rows])
    middles = held[:, :3] / np.maximum(held[:, 3:], 1e-12)
    return bone_distances(middles, lines.heads, lines.tails).argmin(axis=1).astype(np.int32)


def starting_skin(task: BindTask, progress: Progress = no_progress) -> Skin:
    """Make the weights and their gradients in the object's space (no bpy).

    Splats that are nowhere, which only weights that are present can tell a bone of, stay at rest.
    """
    here = np.isfinite(task.positions).all(axis=1)
    if here.all() or task.method in ("CAPTURE", "EMPTY"):
        return _weights(task, progress)
    found, lost = _weights(replace(task, positions=task.positions[here]), progress), int((~here).sum())
    what = "1 splat has a position that is" if lost == 1 else f"{lost:,} splats have positions that are"
    rows = np.where(here, np.cumsum(here) - 1, len(found))
    note = f"{what} not finite; no bone holds {'it' if lost == 1 else 'them'}"
    return replace(_with_static_row(found).take(rows), notes=(*found.notes, note))


def _with_static_row(skin: Skin) -> Skin:
    """Return the skin with one more row, of a splat that no bone holds."""
    width = skin.influences
    return Skin(
        np.vstack([skin.indices, np.full((1, width), STATIC, np.int32)]),
        np.vstack([skin.weights, np.eye(1, width, dtype=np.float32)]),
        np.concatenate([skin.gradients, np.zeros((1, width, 3), np.float32)]),
    )


def _weights(task: BindTask, progress: Progress) -> Skin:
    p, count = task.positions, len(task.bones.heads)
    placed = p @ task.bind[:3, :3].T + task.bind[:3, 3]
    if task.method == "HEAT":
        from ...core.skinning.bone_heat import heat_weights

        found = heat_weights(placed, task.bones.heads, task.bones.tails, progress=progress)
        return make_skin(p, *found, bone_count=count, progress=progress)
    if task.method == "ENVELOPE":
        return _envelopes(task, placed, progress)
    if task.method == "PROXY":
        from ...core.skinning.proxy_weights import transfer_weights

        assert task.proxy is not None
        move = task.proxy.from_splats
        progress("Finding the proxy's surface", 0.0)
        found = transfer_weights(
            p @ move[:3, :3].T + move[:3, 3], task.proxy.vertices, task.proxy.triangles, task.proxy.weights
        )
        return make_skin(p, *found, bone_count=count, completion="static", progress=progress)
    if task.method == "CAPTURE":
        skin, successors = task.present, task.successors
        assert skin is not None and successors is not None
        table = np.append(successors, STATIC)  # index -1 finds the last
        indices = table[np.where(skin.indices < len(successors), skin.indices, STATIC)]
        gradients = None if task.estimate else skin.gradients
        return make_skin(p, indices, skin.weights, gradients, bone_count=count, progress=progress)
    return empty_skin(len(p))


def _envelopes(task: BindTask, placed: F64, progress: Progress) -> Skin:
    """Keep the strongest envelopes of each splat; outside of all, and where they fade, splats stay put."""
    from ...core.skinning.envelopes import envelope_weights

    b = task.bones
    kept = min(8, len(b.heads))
    n = len(placed)
    indices, weights = np.empty((n, kept), np.int32), np.empty((n, kept))
    gradients = np.empty((n, kept, 3))
    for start in range(0, n, CHUNK):
        progress("Measuring envelopes", start / n)
        rows = slice(start, start + CHUNK)
        w, g = envelope_weights(
            placed[rows], b.heads, b.tails, b.head_radii, b.tail_radii, b.distances, b.strengths
        )
        order = np.argsort(-w, axis=1, kind="stable")[:, :kept]
        indices[rows], weights[rows] = order, np.take_along_axis(w, order, axis=1)
        gradients[rows] = np.take_along_axis(g, order[..., None], axis=1) @ task.bind[:3, :3]
    skin = make_skin(
        task.positions, indices, weights, gradients, bone_count=len(b.heads), completion="static"
    )
    if (weights.max(axis=1, initial=0) > 0).all():
        return skin
    hint = "The envelopes do not reach all splats; enlarge them in Edit Mode, or draw weights"
    return replace(skin, notes=(*skin.notes, hint))
