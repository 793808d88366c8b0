"""How a selection fades across the edge of its shape."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ..errors import SelectionError

Floats = NDArray[np.floating]
Curve = Literal["linear", "smoothstep"]
Align = Literal["inside", "centre", "outside"]
# Where the fade is half over, in widths outside of the edge, plus a half.
OFFSETS: dict[str, float] = {"inside": 0.0, "centre": 0.5, "outside": 1.0}


@dataclass(frozen=True)
class Feather:
    """The fade ``f(d)`` from 1 to 0 over the signed distance d to a shape's edge (negative inside).

    width : of the fade, pixels; 0 is a hard edge
    curve : "smoothstep" has a continuous slope, "linear" has not
    align : the fade lies inside of the edge, half on each side ("centre"), or outside of it
    """

    width: float = 0.0
    curve: Curve = "smoothstep"
    align: Align = "centre"

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", float(self.width))
        if not (np.isfinite(self.width) and self.width >= 0):
            raise SelectionError(f"The smoothness of a selection is a width of at least 0, not {self.width}")
        if self.curve not in get_args(Curve) or self.align not in OFFSETS:
            raise SelectionError(
                "A feather is linear or smoothstep and lies inside, centre or outside, not "
                f"{self.curve} {self.align}"
            )

    @property
    def full(self) -> float:
        """The distance up to which a selection is full."""
        return (OFFSETS[self.align] - 1) * self.width

    @property
    def none(self) -> float:
        """The distance beyond which nothing is selected."""
        return OFFSETS[self.align] * self.width

    def value(self, distance: Floats) -> Floats:
        """Return the fade f in 0..1 (in the type of the distances)."""
        if self.width == 0:
            return (distance <= 0).astype(distance.dtype)
        t = self._progress(distance)
        return t if self.curve == "linear" else t * t * (3 - 2 * t)

    def value_and_slope(self, distance: Floats) -> tuple[Floats, Floats]:
        """Return f and df/dd, which is 0 on hard edges and where the fade has not begun or is over."""
        if self.width == 0:
            return self.value(distance), np.zeros_like(distance)
        t = self._progress(distance)
        if self.curve == "linear":
            return t, np.where((t > 0) & (t < 1), distance.dtype.type(-1 / self.width), 0)
        return t * t * (3 - 2 * t), t * (1 - t) * (-6 / self.width)

    def _progress(self, distance: Floats) -> Floats:
        t = distance * (-1 / self.width)
        t += OFFSETS[self.align]
        return np.clip(t, 0, 1, out=t)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)
