"""The weights that layers start from, of whole splats and of those they were split into.

While nothing but layers changes, the whole splats' own starting weights stand. Splats that are bound anew, or
whose bones are numbered anew, after they were resampled tell the whole ones theirs: those of the child
nearest to the centre, carried there along its gradients.
"""

from __future__ import annotations

import hashlib

import bpy
import numpy as np

from ...core.selection.skin import stack_to_skin
from ...core.skinning.skin import STATIC, Skin, unit_sum
from ..attributes import read_attribute
from ..skin_attributes import BASE, SKIN, influence_count, read_skin
from ..weights.layers import empty_skin, padded, stored_stack
from .digest import DIGEST, weights_digest
from .whole import nearest_rows, origins, whole_of

START = (
    "gaussianimate_resample_start"  # custom property of resampled splats: digest of their starting weights
)


def start_of(data: bpy.types.PointCloud) -> Skin | None:
    """Return the starting weights of splats, None where they start from nothing."""
    if influence_count(data, BASE):
        return read_skin(data, BASE)
    stack = stored_stack(data)
    if stack is not None and stack.layers:
        return None
    skin = read_skin(data, SKIN)
    return skin if stack is None or ((skin.indices != STATIC) & (skin.weights > 0)).any() else None


def start_digest(start: Skin | None) -> str:
    """Return a short text that changes with starting weights; slots that nothing uses do not count."""
    found = hashlib.sha1()
    if start is not None:
        for indices, weights in zip(start.indices.T, start.weights.T, strict=True):
            if weights.any():
                found.update(np.where(weights > 0, indices, 0).astype(np.int32).tobytes())
                found.update(np.ascontiguousarray(weights, np.float32).tobytes())
    return found.hexdigest()


def whole_start(data: bpy.types.PointCloud) -> Skin | None:
    """Return the starting weights of the whole splats as they are now, None where they start from nothing."""
    whole, start = whole_of(data), start_of(data)
    if whole is None or start is None:
        return start
    before = start_of(whole)
    if not len(data.points):
        return before
    return before if data.get(START) == start_digest(start) else _gathered(data, whole, start, before)


def whole_skin(data: bpy.types.PointCloud, start: Skin | None) -> Skin:
    """Return the weights of the whole splats as the layers are now, given what they start from."""
    whole = whole_of(data)
    if whole is None:
        return read_skin(data)
    if data.get(DIGEST) == weights_digest(data) and data.get(START) == start_digest(start_of(data)):
        return read_skin(whole)
    stack = stored_stack(data)
    if stack is None:
        return empty_skin(len(whole.points)) if start is None else start
    if not stack.layers:
        return padded(empty_skin(len(whole.points)) if start is None else start)
    return padded(stack_to_skin(stack, read_attribute(whole, "position").astype(np.float64), base=start))


def _gathered(
    data: bpy.types.PointCloud, whole: bpy.types.PointCloud, start: Skin, before: Skin | None
) -> Skin:
    """Return for whole splats what the splats they were split into have, at the centres of the whole ones."""
    from ...core.resample.weight_fields import StoredField

    count, rows = len(whole.points), nearest_rows(data)
    result = start.take(np.maximum(rows, 0))
    known = origins(data)
    split = np.flatnonzero(np.bincount(known[known >= 0], minlength=count) > 1)
    field = StoredField(read_attribute(data, "position"), start)
    centres = read_attribute(whole, "position")[split].astype(np.float64)
    _, weights, gradients = field(centres, rows[split])
    result.weights[split] = unit_sum(weights.astype(np.float32))
    result.gradients[split] = gradients
    lost = np.flatnonzero(rows < 0)
    if before is not None and before.influences == result.influences:
        for name in ("indices", "weights", "gradients"):
            getattr(result, name)[lost] = getattr(before, name)[lost]
    return result
