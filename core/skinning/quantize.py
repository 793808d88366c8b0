"""Skins packed into a few bytes a splat.

"paper10"
    two influences in 10 bytes as the gradient rig has them: two 8-bit indices, two 8-bit weights, two
    gradients of three signed 8-bit values. One gradient scale serves the whole asset, so that rounding
    keeps G_b = -G_a exactly.
"compact"
    the last weight is what is missing to 1 and the last gradient what is missing to 0, so only K - 1 of
    each are kept, with 16 bits a value: 10 bytes for two influences, at a resolution 256 times finer, 19
    for three and 28 for four.

With u = (T_a - T_b) p, the range of the gradients g and eta the elastic strength, errors for two influences
are at most

    |dp'| <= |u| / 510 and |dR| <= eta |u| sqrt(3) g / 254 ("paper10"),
    |dp'| <= |u| / 131070 and |dR| <= eta |u| sqrt(3) g / 65534 ("compact").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import RigError
from .skin import STATIC, Skin
from .weights import truncate

Floats = NDArray[np.floating]
STATIC_BYTE = 255
PAPER10 = np.dtype([("bones", "u1", 2), ("weights", "u1", 2), ("gradients", "i1", (2, 3))])


def compact_layout(influences: int) -> np.dtype:
    """Return the record of the "compact" layout for 2, 3 or 4 influences."""
    rest = influences - 1
    return np.dtype([("bones", "u1", influences), ("weights", "<u2", rest), ("gradients", "<i2", (rest, 3))])


@dataclass(frozen=True)
class PackedSkin:
    """A quantised skin.

    records : (N,) structured array, one record a splat (``PAPER10`` or `compact_layout`)
    gradient_range : 1/m; a gradient component is its integer times ``gradient_range`` over the largest
        integer
    layout : which of the two
    """

    records: NDArray[np.void]
    gradient_range: float
    layout: Literal["paper10", "compact"]


def pack(skin: Skin, layout: Literal["paper10", "compact"] = "compact") -> PackedSkin:
    """Quantise a skin; influences beyond two ("paper10") or four ("compact") are cut off.

    Rows without any weight stay where they are.

    Raises
    ------
    RigError : the skin names a bone above 254
    """
    count = 2 if layout == "paper10" else min(max(skin.influences, 2), 4)
    indices, weights, gradients = _padded(skin, count)
    if indices.max(initial=0) >= STATIC_BYTE:
        raise RigError(f"Packed skins hold at most 255 bones, but this one names bone {indices.max()}")
    packed = np.zeros(len(skin), dtype=PAPER10 if layout == "paper10" else compact_layout(count))
    kept = 2 if layout == "paper10" else count - 1
    top, steps = (255, 127) if layout == "paper10" else (65535, 32767)
    reach = float(np.abs(gradients).max(initial=0))
    packed["bones"] = np.where(indices == STATIC, STATIC_BYTE, indices)
    packed["weights"] = np.rint(weights[:, :kept] * top)
    packed["gradients"] = np.rint(gradients[:, :kept] * (steps / reach if reach > 0 else 0))
    if layout == "paper10":  # exact complements, whatever rounding says
        packed["weights"][:, 1] = top - packed["weights"][:, 0]
        packed["gradients"][:, 1] = -packed["gradients"][:, 0]
    return PackedSkin(packed, reach, layout)


def unpack(packed: PackedSkin) -> Skin:
    """Return the skin of a packed one; weights sum to 1 and gradients to 0 again."""
    records = packed.records
    top, steps = (255, 127) if packed.layout == "paper10" else (65535, 32767)
    count = records["bones"].shape[1]
    indices = records["bones"].astype(np.int32)
    indices[indices == STATIC_BYTE] = STATIC
    weights = np.zeros((len(records), count), dtype=np.float32)
    gradients = np.zeros((len(records), count, 3), dtype=np.float32)
    weights[:, :-1] = records["weights"][:, : count - 1] / np.float64(top)
    gradients[:, :-1] = records["gradients"][:, : count - 1] * (packed.gradient_range / steps)
    weights[:, -1] = np.maximum(1 - weights[:, :-1].sum(axis=1), 0)
    gradients[:, -1] = -gradients[:, :-1].sum(axis=1)
    return Skin(indices, weights, gradients)


def _padded(skin: Skin, count: int) -> tuple[NDArray[np.int32], Floats, Floats]:
    """Return indices, weights and gradients of exactly ``count`` influences in double precision."""
    weights, gradients = skin.weights.astype(np.float64), skin.gradients.astype(np.float64)
    free = ~(weights.sum(axis=1) > 0)
    weights[free], gradients[free] = 1, 0
    indices = np.where(free[:, None], STATIC, skin.indices)
    indices, weights, gradients, _ = truncate(indices, weights, gradients, count)
    lack = count - indices.shape[1]
    return (
        np.pad(indices, ((0, 0), (0, lack)), constant_values=STATIC),
        np.pad(weights, ((0, 0), (0, lack))),
        np.pad(gradients, ((0, 0), (0, lack), (0, 0))),
    )
