"""Selection layers in torch, differentiated by the machine: the proof of the closed form.

Weights are written down once more, directly from their definitions; gradients come from reverse mode. A new
operation or feather needs one line here (`OPERATIONS`) to have a gradient at once.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .depth import FrontSurface
from .feather import OFFSETS, Feather
from .layer import LayerStack, SelectionLayer
from .shapes import Ellipse, Lasso, Rectangle, Shape, Stroke
from .shapes.ellipse import closest_parameter
from .viewpoint import NEAR, Viewpoint

Floats = NDArray[np.floating]

# weights, fade, strength -> weights
OPERATIONS: dict[str, Callable[[Tensor, Tensor, float], Tensor]] = {
    "replace": lambda w, f, s: s * f,
    "add": lambda w, f, s: (w + s * f).clamp(0, 1),
    "subtract": lambda w, f, s: (w - s * f).clamp(0, 1),
    "multiply": lambda w, f, s: w * (s * f),
    "mix": lambda w, f, s: w + f * (s - w),
}


def evaluate_stack(stack: LayerStack, points: Floats) -> tuple[Floats, Floats]:
    """Return weights (N, M) and gradients (N, M, 3) of a stack at points (N, 3) by reverse mode.

    In the floating type of the points. A weight depends on its own point only, so that one pass for each
    bone gives the gradients of all points.
    """
    p = torch.as_tensor(np.ascontiguousarray(points)).requires_grad_()
    weights = stack_weights(stack, p)
    gradients = np.zeros((*weights.shape, 3), dtype=points.dtype)
    for bone in range(weights.shape[1]):
        if weights[:, bone].requires_grad:
            (slope,) = torch.autograd.grad(weights[:, bone].sum(), p, retain_graph=True)
            gradients[:, bone] = slope.numpy()
    return weights.detach().numpy(), gradients


def stack_weights(stack: LayerStack, points: Tensor) -> Tensor:
    """Return the weights (N, M) of a stack at points (N, 3), differentiable by the points."""
    columns = []
    for bone in stack.bones:
        w = torch.zeros(len(points), dtype=points.dtype)
        for layer in stack.of_bone(bone, muted=False):
            w = OPERATIONS[layer.operation](w, layer_fade(layer, points), layer.strength)
        columns.append(w)
    return torch.stack(columns, dim=1) if columns else torch.zeros((len(points), 0), dtype=points.dtype)


def layer_fade(layer: SelectionLayer, points: Tensor) -> Tensor:
    """Return the fade (N,) of a layer at points (N, 3): 0..1, before its strength."""
    fade = torch.zeros(len(points), dtype=points.dtype)
    if layer.shape.bounds is None:
        return fade
    pixels, seen = project(layer.viewpoint, points)
    value = feather(layer.feather, signed_distance(layer.shape, pixels[seen]))
    if layer.front is not None:
        value = value * behind_surface(layer.front, layer.viewpoint, points[seen], pixels[seen])
    return fade.index_put((torch.nonzero(seen)[:, 0],), value)


def project(view: Viewpoint, points: Tensor) -> tuple[Tensor, Tensor]:
    """Return pixels (N, 2), and which points are in front of the eye."""
    matrix = torch.as_tensor(view.matrix, dtype=points.dtype)
    clip = points @ matrix[:, :3].T + matrix[:, 3]
    seen = clip[:, 3] > NEAR * torch.linalg.norm(matrix[3])
    ndc = clip[:, :2] / torch.where(seen, clip[:, 3], 1)[:, None]
    window = torch.tensor(view.window, dtype=points.dtype)
    return window[:2] + window[2:] * (ndc + 1) / 2, seen


def feather(feather: Feather, distance: Tensor) -> Tensor:
    """Return the fade at signed distances."""
    if feather.width == 0:
        return (distance <= 0).to(distance.dtype)
    t = (OFFSETS[feather.align] - distance / feather.width).clamp(0, 1)
    return t if feather.curve == "linear" else t * t * (3 - 2 * t)


def signed_distance(shape: Shape, x: Tensor) -> Tensor:
    """Return signed distances (N,) of pixels (N, 2) to the edge of a shape."""
    if isinstance(shape, Rectangle):
        return _rectangle(shape, x)
    if isinstance(shape, Ellipse):
        return _ellipse(shape, x)
    if isinstance(shape, Lasso):
        return _lasso(shape, x)
    if isinstance(shape, Stroke):
        return _stroke(shape, x)
    raise TypeError(f"no torch distance for {shape!r}")


def behind_surface(front: FrontSurface, view: Viewpoint, points: Tensor, pixels: Tensor) -> Tensor:
    """Return the fade in depth (N,); the B-spline is evaluated over the whole picture."""
    depths = torch.as_tensor(front.depths.copy(), dtype=points.dtype)
    kernels = []
    for axis, count in ((0, front.shape[1]), (1, front.shape[0])):
        low, high = front.box[axis], front.box[axis + 2]
        t = (pixels[:, axis] - low) * (count / (high - low)) - 0.5
        reach = (t[:, None] - torch.arange(-2, count + 2, dtype=points.dtype)).abs()
        inner, outer = 0.75 - reach**2, 0.5 * (1.5 - reach) ** 2
        kernel = torch.where(reach <= 0.5, inner, torch.where(reach < 1.5, outer, 0))
        beyond = torch.arange(-2, count + 2).clamp(0, count - 1)
        flat = torch.zeros((len(t), count), dtype=t.dtype).index_add(1, beyond, kernel)
        rim = torch.nn.functional.one_hot((t.detach() > 0).long() * (count - 1), count).to(t.dtype)
        kernels.append(torch.where(((t < -1.5) | (t > count + 0.5))[:, None], rim, flat))
    surface = ((kernels[1] @ depths) * kernels[0]).sum(dim=1)
    axis = torch.tensor(view.view[2], dtype=points.dtype)
    behind = -(points @ axis[:3] + axis[3]) - surface - front.thickness
    if front.falloff == 0:
        return (behind <= 0).to(points.dtype)
    t = (behind / front.falloff).clamp(0, 1)
    return 1 - t * t * (3 - 2 * t)


def _local(shape: Rectangle | Ellipse, x: Tensor) -> Tensor:
    c, s = float(np.cos(shape.angle)), float(np.sin(shape.angle))
    turn = torch.tensor([[c, -s], [s, c]], dtype=x.dtype)
    return (x - torch.tensor(shape.centre, dtype=x.dtype)) @ turn


def _norm(v: Tensor) -> Tensor:
    """Return lengths; the derivative at 0 is 0, not NaN."""
    squared = (v * v).sum(dim=-1)
    return torch.where(squared > 0, torch.where(squared > 0, squared, 1).sqrt(), 0)


def _rectangle(shape: Rectangle, x: Tensor) -> Tensor:
    q = _local(shape, x).abs() - torch.tensor(shape.half, dtype=x.dtype)
    return _norm(q.clamp(min=0)) + q.amax(dim=-1).clamp(max=0)


def _ellipse(shape: Ellipse, x: Tensor) -> Tensor:
    """The root is found without derivatives; one more step of Newton's method gives it the right ones."""
    local, (a, b) = _local(shape, x).abs(), shape.radii
    if a < b:
        local, a, b = local.flip(-1), b, a
    e, u = a * a - b * b, local[:, 0]
    v = local[:, 1].clamp(min=float(torch.finfo(x.dtype).eps) * b)
    t = torch.as_tensor(closest_parameter(u.detach().numpy(), v.detach().numpy(), a, b))
    excess = (a * u / (t + e)) ** 2 + (b * v / t) ** 2 - 1
    rate = -2 * ((a * u) ** 2 / (t + e) ** 3 + (b * v) ** 2 / t**3)
    t = t - excess / rate.detach()
    return (t - b * b) * torch.sqrt((u / (t + e)) ** 2 + (v / t) ** 2)


def _lasso(shape: Lasso, x: Tensor) -> Tensor:
    edges = torch.as_tensor(shape.edges, dtype=x.dtype)
    start, along = edges[:, :2], edges[:, 2:] - edges[:, :2]
    offset = x[:, None] - start
    t = ((offset * along).sum(dim=-1) / (along * along).sum(dim=-1)).clamp(0, 1)
    nearest = _norm(offset - t[..., None] * along).amin(dim=1)
    y = x[:, None, 1].detach()
    level = (start[:, 1] > y) != (edges[:, 3] > y)
    meets = start[:, 0] + (y - start[:, 1]) * along[:, 0] / torch.where(along[:, 1] == 0, 1, along[:, 1])
    odd = (level & (x[:, None, 0].detach() < meets)).sum(dim=1) % 2 == 1
    return torch.where(odd, -nearest, nearest)


def _stroke(shape: Stroke, x: Tensor) -> Tensor:
    c, r = torch.tensor(shape.points, dtype=x.dtype), torch.tensor(shape.radii, dtype=x.dtype)
    distance = (_norm(x[:, None] - c) - r).amin(dim=1)  # the discs
    for a, b, ra, rb in zip(c[:-1], c[1:], r[:-1], r[1:], strict=True):
        length = float(torch.linalg.norm(b - a))
        if length <= abs(float(ra - rb)):
            continue
        axis, sine = (b - a) / length, (ra - rb) / length
        along = (x - a) @ axis
        across = _norm(x - a - along[:, None] * axis)
        foot = along - across * sine / torch.sqrt(1 - sine**2)
        side = across * torch.sqrt(1 - sine**2) + along * sine - ra
        distance = torch.where((foot > 0) & (foot < length), torch.minimum(distance, side), distance)
    return distance
