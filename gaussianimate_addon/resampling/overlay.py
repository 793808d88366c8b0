"""The splats that a resampling would split, shown in viewports until it is done or they are hidden."""

from __future__ import annotations

from dataclasses import dataclass

import bpy
import numpy as np

from ..attributes import splats
from ..drawer.display import DRAWER as DRAWN_HERE
from ..drawer.display import set_display
from ..drawer.mask import Mask
from ..drawer.viewport import DRAWER
from ..properties import object_notes
from ..views import redraw_sidebars, redraw_views
from .digest import weights_digest
from .task import Answer, check_unchanged
from .whole import origins


@dataclass
class BentSplats(Mask):
    """The overlay; ``digest`` is of the weights that it was found with."""

    digest: str = ""


def show_overlay(object: bpy.types.Object, answer: Answer) -> str:
    """Show which splats are split, how often as heat; returns counts and notes, one sentence a line.

    Where none would be, nothing is laid over them.

    Raises
    ------
    RigError : splats or weights changed since they were read
    """
    check_unchanged(object, answer.request.splats, "while bent ones were looked for; show them again")
    text = "\n".join([answer.summary("would be split"), *answer.found.notes])
    bent = bent_values(answer)
    if not bent.any():
        hide_overlay()
        return text
    if object_notes(object).display != DRAWN_HERE and not bpy.app.background:
        set_display(object, DRAWN_HERE)
    values = np.append(bent, np.float32(0))[origins(splats(object))]  # -1: of no whole splat
    digest = weights_digest(splats(object))
    DRAWER.overlay = BentSplats(object.session_uid, values, text, digest=digest)
    redraw_views()
    return text


def hide_overlay() -> None:
    """Show nothing over the splats any more."""
    DRAWER.overlay = None
    redraw_views()
    redraw_sidebars()


def overlay_text(object: bpy.types.Object) -> str | None:
    """Return what the overlay on an object says, None where there is none."""
    over = DRAWER.overlay
    if over is None or over.uid != object.session_uid or len(over.values) != len(splats(object).points):
        return None
    if isinstance(over, BentSplats) and over.digest != weights_digest(splats(object)):
        return f"{over.text}\nWeights changed since; show them again"
    return over.text


def bent_values(answer: Answer) -> np.ndarray:
    """Return 0 for whole splats that stay whole, else 0.5 (split once) to 1 (split three times or more)."""
    found, count = answer.found, len(answer.request.splats.cloud)
    depths = np.zeros(count, np.float32)
    np.maximum.at(depths, found.origins, found.depths.astype(np.float32))
    return np.where(depths > 0, np.minimum(0.25 + 0.25 * depths, 1), 0).astype(np.float32)
