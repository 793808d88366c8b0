"""The order of drawing: one for all items of a view, sorted in a thread while the last one is drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import gpu
import numpy as np
from numpy.typing import NDArray

from ...core.render.camera import Camera
from ...core.render.depth_order import (
    OrderKey,
    back_to_front,
    depth_row,
    needs_new_order,
    posed_view_depths,
)
from .atlas import Atlas, Span
from .draw import Item, upload_order

F32 = NDArray[np.float32]
Order = NDArray[np.uint32]
_STATIC = np.zeros((1, 3, 4), np.float32)
_WORKERS = ThreadPoolExecutor(max_workers=1, thread_name_prefix="gaussianimate-order")


def order_key(atlas: Atlas, items: Sequence[Item], moves: Sequence[F32], camera: Camera) -> OrderKey:
    """Return what the order of a view depends on."""
    spans = [atlas.spans[item.span] for item in items]
    rows = [depth_row(camera, item.matrix, span.centre) for item, span in zip(items, spans, strict=True)]
    return OrderKey(
        items=(atlas.version, *(item.span for item in items)),
        rows=np.array(rows).reshape(-1, 4),
        radii=np.array([span.radius for span in spans]),
        moves=tuple(np.concatenate([move, _STATIC]) for move in moves),
        depth_range=camera.depth_range,
    )


def sort(spans: Sequence[Span], key: OrderKey) -> Order:
    """Return the rows of all items to draw, the farthest first; touches no Blender data.

    Parameters
    ----------
    spans : of the items, one each
    """
    depths = [np.zeros(0, np.float32)]
    for span, row, moves in zip(spans, key.rows, key.moves, strict=True):
        if span.skin is None or len(moves) == 1:
            depths.append(span.local @ row[:3].astype(np.float32) + np.float32(row[3]))
        else:
            depths.append(posed_view_depths(span.local, span.skin.indices, span.skin.weights, moves, row))
    return back_to_front(np.concatenate(depths), *key.depth_range)


class ViewOrder:
    """The order of one view, kept from draw to draw.

    texture, count : what to draw with, None and 0 before the first `follow`
    version : counts up with every new order
    """

    def __init__(self) -> None:
        self.texture: gpu.types.GPUTexture | None = None
        self.count = 0
        self.version = 0
        self._key: OrderKey | None = None
        self._pending: tuple[OrderKey, Future[Order]] | None = None

    @property
    def waiting(self) -> bool:
        """Whether a sort is under way."""
        return self._pending is not None

    @property
    def finished(self) -> bool:
        """Whether a sort is done that no draw has taken over yet."""
        return self._pending is not None and self._pending[1].done()

    def follow(
        self,
        atlas: Atlas,
        items: Sequence[Item],
        moves: Sequence[F32],
        camera: Camera,
        started: Callable[[], None],
    ) -> None:
        """Take over a finished order and see to a new one where this view needs it.

        The first order, and one for other splats than the last, is waited for: there is nothing to draw
        meanwhile. ``started`` is called when a thread sorts, so that a redraw can follow.
        """
        key = order_key(atlas, items, moves, camera)
        self._collect(key)
        spans = [atlas.spans[item.span] for item in items]
        if self._key is None or self._key.items != key.items:
            self._take(key, sort(spans, key))
        elif self._pending is None and needs_new_order(self._key, key):
            self._pending = key, _WORKERS.submit(sort, spans, key)
            started()

    def _collect(self, now: OrderKey) -> None:
        """Take a finished order over; drop one of other splats, finished or not."""
        if self._pending is None:
            return
        key, future = self._pending
        if key.items != now.items:
            self._pending = None
        elif future.done():
            self._pending = None
            self._take(key, future.result())

    def _take(self, key: OrderKey, order: Order) -> None:
        self._key, self.count = key, len(order)
        self.texture = upload_order(order)
        self.version += 1
