"""One value a splat over its colours, uploaded as it changes: what a gesture selects, what will be split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count

import gpu
import numpy as np
from numpy.typing import NDArray

from ...core.render.texture_layout import as_table
from .atlas import Atlas, upload
from .scene import Subject

_versions = count(1)


@dataclass
class Mask:
    """Values 0..1 of the splats of one object.

    uid : session number of the object
    values : (N,) float32
    text : what it says, for panels
    version : differs from mask to mask
    """

    uid: int
    values: NDArray[np.float32]
    text: str = ""
    version: int = field(default_factory=_versions.__next__)
    _texture: gpu.types.GPUTexture | None = field(default=None, repr=False)
    _atlas: int = field(default=0, repr=False)

    def texture(self, subjects: Sequence[Subject], atlas: Atlas) -> gpu.types.GPUTexture | None:
        """Return the values by the rows of an atlas, -1 for other objects; None where it is not there."""
        if self._texture is None or self._atlas != atlas.version:
            table = self.rows(subjects, atlas)
            if table is None:
                return None
            limit = gpu.capabilities.max_texture_size_get()
            self._texture, self._atlas = upload(as_table(table[:, None], limit), "R32F"), atlas.version
        return self._texture

    def rows(self, subjects: Sequence[Subject], atlas: Atlas) -> NDArray[np.float32] | None:
        """Return the values (rows of the atlas,), -1 for other objects; None where it is not there."""
        table = np.full(max(sum(len(span) for span in atlas.spans), 1), -1, np.float32)
        for subject, span in zip(subjects, atlas.spans, strict=True):
            if subject.uid == self.uid and len(span) == len(self.values):
                table[span.first : span.first + len(span)] = self.values
                return table
        return None
