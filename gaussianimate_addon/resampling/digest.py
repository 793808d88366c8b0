"""Whether weights are still those that splats were resampled with."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from typing import Any

import bpy
import numpy as np

from ...core.errors import SelectionError
from ..skin_attributes import SKIN, influence_count
from ..weights.layers import LAYERS, parsed

DIGEST = "gaussianimate_resampled"  # custom property of resampled splats: the digest of their weights
SAMPLES = 64  # splats whose weights are looked at


def weights_digest(data: bpy.types.PointCloud) -> str:
    """Return a short text that changes with the weights: of the layers, and of some splats' own weights.

    Neither names of bones nor applied transforms matter. Panels ask at every redraw, so only some splats are
    looked at.
    """
    count, found = len(data.points), hashlib.sha1()
    text = data.get(LAYERS)
    if isinstance(text, str):
        found.update(_layers_digest(text).encode())
    rows = np.unique(np.linspace(0, count - 1, SAMPLES if count else 0).astype(int))
    for k in range(influence_count(data, SKIN)):
        weights: Any = data.attributes.get(f"{SKIN}:weight_{k}")
        bones: Any = data.attributes.get(f"{SKIN}:index_{k}")
        if weights is None or bones is None or (bones.data_type, weights.data_type) != ("INT", "FLOAT"):
            continue  # deleted or replaced by another tool, as whoever reads all of them says
        values = [(bones.data[row].value, weights.data[row].value) for row in rows.tolist()]
        found.update(np.array(values, np.float32).tobytes())
    return found.hexdigest()


@lru_cache(maxsize=8)
def _layers_digest(text: str) -> str:
    try:
        stack = parsed(text)
    except SelectionError:
        return text  # damaged, or of a later version, as whoever reads them says
    numbers = {bone: str(number) for number, bone in enumerate(stack.bones)}
    acting = [layer.to_dict() for layer in stack.layers if not layer.muted]
    for layer in acting:
        layer["bone"] = numbers[layer["bone"]]
        del layer["name"], layer["viewpoint"]["view"]  # which follows applied transforms
    return json.dumps(acting)


def is_out_of_date(data: bpy.types.PointCloud) -> bool:
    """Whether the weights of resampled splats changed since."""
    return DIGEST in data and data[DIGEST] != weights_digest(data)
