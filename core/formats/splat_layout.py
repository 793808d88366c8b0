"""Which columns of a PLY's vertices are the parameters of a Gaussian splat.

The names are those of the reference implementation (Kerbl et al. 2023, "3D Gaussian Splatting for Real-Time
Radiance Field Rendering"): ``f_rest`` is channel-major, ``opacity`` a logit, ``scale`` a logarithm, ``rot``
a quaternion wxyz of any length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError

POSITION = ("x", "y", "z")
BASE_COLOR = ("f_dc_0", "f_dc_1", "f_dc_2")
SCALE = ("scale_0", "scale_1", "scale_2")
ROTATION = ("rot_0", "rot_1", "rot_2", "rot_3")
REQUIRED = (*POSITION, *BASE_COLOR, "opacity", *SCALE, *ROTATION)

Columns = slice | list[int]


@dataclass(frozen=True)
class SplatLayout:
    """Columns of the parameters, as slices where they are neighbours, else as lists.

    rest : the f_rest columns in their order, None at degree 0
    rest_stride : coefficients a channel in the file, which may be more than `degree` needs
    degree : degree of the spherical harmonics that is read, 0-3
    notes : what of the file's harmonics is left out
    """

    position: Columns
    base_color: Columns
    opacity: int
    scale: Columns
    rotation: Columns
    rest: Columns | None
    rest_stride: int
    degree: int
    notes: tuple[str, ...]

    def rest_of(self, block: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the higher coefficients (n, (degree + 1)^2 - 1, 3) of the block; degree > 0."""
        rest = block[:, self.rest].reshape(len(block), 3, self.rest_stride)
        return rest[:, :, : (self.degree + 1) ** 2 - 1].transpose(0, 2, 1)

    def used(self, columns: int) -> NDArray[np.bool_]:
        """Return the mask (columns,) of those whose values must be finite: all parameters but opacity."""
        mask = np.zeros(columns, bool)
        for part in (self.position, self.base_color, self.scale, self.rotation, self.rest):
            if part is not None:
                mask[part] = True
        return mask


def is_splat(names: Sequence[str]) -> bool:
    """Whether vertices of these properties are meant as splats: any two parameter groups are there."""
    groups = (("f_dc_0",), ("scale_0",), ("rot_0", "rotation_0"), ("opacity",))
    return sum(any(name in names for name in group) for group in groups) >= 2


def splat_layout(names: Sequence[str], path: str | PathLike[str]) -> SplatLayout:
    """Find the parameters among the properties `names`, whatever their order.

    Raises
    ------
    FormatError : parameters are missing; the message lists them
    """
    index = {name: i for i, name in enumerate(names)}
    if missing := [name for name in REQUIRED if name not in index]:
        raise FormatError(path, _missing_text(missing, names))
    rest = [f"f_rest_{i}" for i in range(sum(name.startswith("f_rest_") for name in names))]
    if missing := [name for name in rest if name not in index]:
        raise FormatError(path, f"the splat properties {', '.join(missing[:4])} are missing")
    degree, notes = _degree(len(rest))
    return SplatLayout(
        position=_columns(index, POSITION),
        base_color=_columns(index, BASE_COLOR),
        opacity=index["opacity"],
        scale=_columns(index, SCALE),
        rotation=_columns(index, ROTATION),
        rest=_columns(index, rest) if degree else None,
        rest_stride=len(rest) // 3,
        degree=degree,
        notes=notes,
    )


def _degree(rest_count: int) -> tuple[int, tuple[str, ...]]:
    if rest_count % 3:
        return 0, (f"The {rest_count} f_rest properties are no multiple of three and were ignored.",)
    stride = rest_count // 3
    degree = max(d for d in range(4) if (d + 1) ** 2 - 1 <= stride)
    if (degree + 1) ** 2 - 1 == stride:
        return degree, ()
    return degree, (f"The {rest_count} f_rest properties fit no degree; degree {degree} was read.",)


def _columns(index: dict[str, int], names: Sequence[str]) -> Columns:
    columns = [index[name] for name in names]
    if columns == list(range(columns[0], columns[0] + len(columns))):
        return slice(columns[0], columns[0] + len(columns))
    return columns


def _missing_text(missing: list[str], names: Sequence[str]) -> str:
    text = f"the splat properties {', '.join(missing)} are missing"
    if not is_splat(names):
        return f"this is a plain point cloud, not splats ({text}): import it with Blender's own PLY importer"
    others = [n for n in names if n not in REQUIRED and not n.startswith(("f_rest_", "n"))]
    return text + (f"; the file has {', '.join(others[:8])} instead" if others else "")
