"""How a selection changes the weights that are there, and their gradients."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]
Operation = Literal["replace", "add", "subtract", "multiply", "mix"]


class Selected(NamedTuple):
    """What a layer selects among N points, before its strength.

    fade : (N,) f in 0..1
    rows : (R,) ascending, the points where the gradient of f need not be 0
    slope : (3, R) gradient of f there, in object space, 1/m; None where gradients were not asked for
    """

    fade: Floats
    rows: NDArray[np.intp]
    slope: Floats | None


def compose(
    operation: Operation,
    strength: float,
    weights: Floats,
    gradients: Floats | None,
    selected: Selected,
    blank: bool = False,
) -> None:
    """Change weights (N,) and gradients (3, N) in place by a selection.

    ============  ===========================================
    replace       ``s``
    add           ``w + s``
    subtract      ``w - s``
    multiply      ``w s``
    mix           ``w + f (strength - w)``: paint towards the strength
    ============  ===========================================

    with the selection ``s = strength f``. Sums are clamped to 0..1; where the clamp acts the gradient is 0.

    blank : weights and gradients are known to be 0 everywhere, which saves reading them
    """
    if blank and operation in ("add", "mix"):
        operation = "replace"
    if gradients is not None:
        _compose_gradients(operation, strength, weights, gradients, selected, blank)
    fade = selected.fade
    if operation == "replace":
        np.multiply(fade, strength, out=weights)
    elif operation == "multiply":
        weights *= strength * fade
    elif operation == "mix":
        weights += fade * (strength - weights)
    else:
        adds = operation == "add"
        weights += fade * (strength if adds else -strength)
        if gradients is not None and (not adds or weights.max(initial=0) >= 1):
            gradients[:, np.flatnonzero(((weights >= 1) if adds else (weights <= 0)) & (fade > 0))] = 0
        np.clip(weights, 0, 1, out=weights)


def _compose_gradients(
    operation: Operation,
    strength: float,
    weights: Floats,
    gradients: Floats,
    selected: Selected,
    blank: bool,
) -> None:
    """Change the gradients as if nothing were clamped; weights are those from before."""
    fade, rows, slope = selected
    if operation == "replace" and not blank:
        gradients[:] = 0
    elif operation == "multiply":
        gradients *= strength * fade
    elif operation == "mix":
        gradients *= 1 - fade
    if slope is None:
        return
    if operation == "mix":
        factor = strength - weights[rows]
    elif operation == "multiply":
        factor = strength * weights[rows]
    else:
        factor = -strength if operation == "subtract" else strength
    for gradient, change in zip(gradients, slope * factor, strict=True):  # by rows, which lie side by side
        if operation == "replace":
            gradient[rows] = change
        else:
            gradient[rows] += change
