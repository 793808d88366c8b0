"""Drawn pictures to PNG and OpenEXR files, each written whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import bpy
import numpy as np
from numpy.typing import NDArray

from ..core.atomic_file import replacing
from ..core.errors import FormatError
from ..core.render.exr_writer import write_exr

F32 = NDArray[np.float32]
NO_DEPTH = 1e10  # what Blender writes where nothing is seen
# The order in which settings are set and put back: each decides what the next may be.
_SETTINGS = ("media_type", "file_format", "color_mode", "color_depth")


def write_exr_picture(path: Path, rgba: F32, depth: F32 | None, bits: int, pixel_aspect: float = 1.0) -> None:
    """Write channels R G B A, and the depths as Depth.Z, which Blender's compositor knows.

    Parameters
    ----------
    path : the file, in an existing folder; overwritten
    rgba : (H, W, 4) scene-linear, premultiplied, row 0 is the bottom row
    depth : (H, W) metres, inf where nothing is seen; always stored with 32 bits
    bits : of a colour channel, 16 or 32

    Raises
    ------
    FormatError : the disk refuses
    """
    kind = np.float16 if bits == 16 else np.float32
    largest = np.finfo(kind).max
    colours = np.minimum(rgba, largest).astype(kind)
    channels = dict(zip("RGBA", np.moveaxis(colours, -1, 0), strict=True))
    if depth is not None:
        channels["Depth.Z"] = np.minimum(depth, np.float32(NO_DEPTH))
    write_exr(path, channels, pixel_aspect)


def write_png_picture(path: Path, rgba: F32, scene: bpy.types.Scene, bits: int) -> None:
    """Write colours as the scene's colour management shows them, and alpha not premultiplied, as PNG has it.

    Parameters
    ----------
    path : the file, in an existing folder; overwritten
    rgba : (H, W, 4) scene-linear, premultiplied, row 0 is the bottom row
    bits : of a channel, 8 or 16

    Raises
    ------
    FormatError : the disk refuses
    """
    height, width, _ = rgba.shape
    image: Any = bpy.data.images.new(path.name, width, height, alpha=True, float_buffer=True)
    try:
        image.colorspace_settings.name = "Linear Rec.709"
        image.alpha_mode = "PREMUL"
        image.pixels.foreach_set(np.ascontiguousarray(rgba).ravel())
        with replacing(path) as temporary, _png_settings(scene, bits):
            try:
                image.save_render(str(temporary), scene=scene)
            except RuntimeError as error:  # what Blender reports
                raise FormatError(path, f"the file cannot be written ({str(error).strip()})") from error
    finally:
        bpy.data.images.remove(image)


@contextmanager
def _png_settings(scene: bpy.types.Scene, bits: int) -> Iterator[None]:
    """Let the scene write PNG; its own settings are put back."""
    settings: Any = scene.render.image_settings
    names = [name for name in _SETTINGS if hasattr(settings, name)]
    before = {name: getattr(settings, name) for name in names}
    wanted = {"media_type": "IMAGE", "file_format": "PNG", "color_mode": "RGBA", "color_depth": str(bits)}
    try:
        for name in names:
            setattr(settings, name, wanted[name])
        yield
    finally:
        for name in names:
            setattr(settings, name, before[name])
