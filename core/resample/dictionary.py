"""The splitting dictionary: five children for every shape and opacity of a splat, computed once for all."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..atomic_npz import read_npz, write_npz
from ..errors import RigError
from .grid import OPACITY_COUNT, PAIRS, expand

F32 = NDArray[np.float32]
FORMAT = 1
SHIPPED = Path(__file__).with_name("dictionary.npz")
PROBLEMS = len(PAIRS) * OPACITY_COUNT
_SHAPES = {
    "children": (PROBLEMS, 5, 7),
    "rendering_error": (PROBLEMS,),
    "largest_error": (PROBLEMS,),
    "diameter_ratio": (PROBLEMS,),
}


@dataclass(frozen=True, eq=False)
class Dictionary:
    """Solutions of the 780 problems of `grid.problems`, in whitened coordinates of the parent.

    children : (780, 5, 7) float32: offset (3) in standard deviations of the parent along its axes, longest
        first; log of the standard deviations (3) relative to the parent's, axis by axis; logit of the opacity
    rendering_error : (780,) float32, root mean square of the difference of alpha over all rays, relative to
        the parent's opacity
    largest_error : (780,) float32, the largest of those differences
    diameter_ratio : (780,) float32, largest diameter of a child over the parent's
    metadata : how it was trained
    """

    children: F32
    rendering_error: F32
    largest_error: F32
    diameter_ratio: F32
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, shape in _SHAPES.items():
            array = getattr(self, name)
            if array.shape != shape or array.dtype != np.float32 or not np.isfinite(array).all():
                raise ValueError(f"{name} must be finite float32 of shape {shape}, is {array.shape}")
            array.flags.writeable = False
        object.__setattr__(self, "metadata", MappingProxyType(dict(self.metadata)))

    @property
    def checksum(self) -> str:
        """SHA-256 of all arrays and the metadata."""
        digest = hashlib.sha256(json.dumps(dict(self.metadata), sort_keys=True).encode())
        for name in _SHAPES:
            digest.update(np.ascontiguousarray(getattr(self, name), "<f4").tobytes())
        return digest.hexdigest()

    def table(self, name: str = "children") -> NDArray:
        """Return one of the arrays for every entry, (40, 40, 10, ...): l1 / l3, l2 / l3, opacity."""
        return expand(getattr(self, name))


def save_dictionary(dictionary: Dictionary, path: str | PathLike[str]) -> None:
    """Write a dictionary, whole or not at all.

    Raises
    ------
    RigError : the folder is missing or cannot be written
    """
    header = {"format": FORMAT, "sha256": dictionary.checksum, "training": dict(dictionary.metadata)}
    arrays: dict[str, NDArray] = {name: getattr(dictionary, name) for name in _SHAPES}
    write_npz(path, {"header": np.array(json.dumps(header, sort_keys=True)), **arrays})


@lru_cache(maxsize=2)
def load_dictionary(path: str | PathLike[str] | None = None) -> Dictionary:
    """Return the dictionary of a file, by default the one that comes with the package.

    Raises
    ------
    RigError : there is no such file, it is no dictionary, or it is damaged
    """
    source = SHIPPED if path is None else Path(path)
    arrays = read_npz(source, "a splitting dictionary", ("header", *_SHAPES))
    try:
        header = json.loads(str(arrays["header"]))
        version = header["format"]
        dictionary = Dictionary(**{name: arrays[name] for name in _SHAPES}, metadata=header["training"])
        intact = dictionary.checksum == header["sha256"]
    except (ValueError, KeyError, TypeError) as problem:
        raise RigError(f"{source}: is not a splitting dictionary, or is damaged ({problem}).") from problem
    if version != FORMAT:
        raise RigError(f"{source}: is of format {version}, but this version reads {FORMAT}; train it again.")
    if not intact:
        raise RigError(f"{source}: is damaged, its checksum does not fit; install GaussiAnimate again.")
    return dictionary
