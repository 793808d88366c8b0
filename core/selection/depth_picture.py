"""How deep the splats of a view lie that are seen first: taken once a view, cut out for each gesture.

The cells of the picture depend on the window that a gesture meets, not on the gesture itself, so that what is
cut out for one while it is drawn is what is cut out for it when it is done.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .depth import Box, FrontSurface
from .evaluate import in_chunks
from .preview import Preview
from .viewpoint import Floats, Viewpoint

MOST_CELLS = 96 * 96  # of what is cut out
LONGEST = 1024  # cells along a side of that
SPLATS_PER_CELL = 12
FINEST = 2048  # cells along a window at most
FIRST = 64  # cells along a window in which splats are counted at first
BEFORE = 1024  # cells below and left of the window's corner; no splat beyond
ALONG = 4096  # cells along a side in all
FARTHEST = 1e6  # smallest cells, or windows, from the corner of the window that gestures are cut to
WIDEST = 16  # times that the window is doubled to find splats
NOWHERE = np.uint64(2**64 - 1)
HALF_DARK = np.log(2) * (1 - 1e-3)  # less what rounding to 16 bits takes


class Cells(NamedTuple):
    """The cells with splats in them.

    column, row : (C,) int32, from the window's lower left corner
    median : (C,) float32 depth at which half of the light is gone; inf where the splats stay see-through
    first : (C,) float32 depth of the first splat
    """

    column: NDArray[np.int32]
    row: NDArray[np.int32]
    median: NDArray[np.float32]
    first: NDArray[np.float32]


class DepthPicture:
    """The depths of splats in one view.

    Cells are squares with about 12 splats each. Gestures too large for that take cells of two, three, ...
    times the size. The cells reach as far as gestures that meet the window can; one that does not takes a
    picture of its own, of the window beside that it begins in.

    Parameters
    ----------
    seen : the splats in the view
    opacities, scales : (N,) and (N, 3) of the splats; without them every splat hides what is behind it
    """

    def __init__(self, seen: Preview, opacities: Floats | None = None, scales: Floats | None = None) -> None:
        self.view, self.cell, self._seen = seen.viewpoint, _cell_size(seen), seen
        self._opacities, self._scales = opacities, scales
        self._depths = np.empty(len(seen.points), np.float32)
        self._areas = np.empty(len(seen.points) if scales is not None else 0, np.float32)
        in_chunks(len(seen.points), self._measure, seen.threads)
        least = self._depths.min(where=seen.at.seen & np.isfinite(self._depths), initial=np.inf)
        self._least = least if np.isfinite(least) else np.float32(0)
        self._depths -= self._least
        self._sizes: dict[int, Cells] = {}
        self._beside: DepthPicture | None = None

    def _measure(self, rows: slice) -> None:
        """Fill in depths, and the areas that splats cover, square pixels."""
        self._depths[rows] = _depths(self.view, self._seen.points[rows])
        if self._scales is not None:
            a, b, c = self._scales[rows].T
            wide = np.maximum(np.maximum(a * b, b * c), a * c)  # seen along the smallest axis
            pixels = np.float32(_focal(self.view)) / self._seen.at.w[rows]
            self._areas[rows] = wide * pixels * pixels * np.float32(2 * np.pi)

    def _keys(self, cell: float) -> NDArray[np.uint64]:
        """Return for each splat a number that says cell, depth and darkness and sorts by them.

        24 bits each for the cell and the depth (a float without its lowest bits), 16 for the darkness: how
        many times light falls by a factor e behind the splat. Those in no cell have the largest number.
        """
        keys = np.empty(len(self._depths), np.uint64)

        def work(rows: slice) -> None:
            column, inside = self._cells_along(self._seen.at.x[rows], 0, cell)
            row, in_row = self._cells_along(self._seen.at.y[rows], 1, cell)
            inside &= in_row
            key = (row * ALONG + column).astype(np.uint64)
            key <<= np.uint64(24)
            key |= self._depths[rows].view(np.uint32) >> np.uint32(8)
            key <<= np.uint64(16)
            hidden = None
            if self._opacities is not None and self._scales is not None:
                hidden = self._opacities[rows] * np.minimum(self._areas[rows] / np.float32(cell * cell), 1)
            key |= _darkness(hidden).view(np.uint16)
            key[~inside] = NOWHERE
            keys[rows] = key

        in_chunks(len(keys), work, self._seen.threads)
        return keys

    def _cells_along(
        self, x: NDArray[np.float32], axis: int, cell: float
    ) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """Return columns or rows from 0, and which of them the picture has."""
        t = (x - np.float32(self.view.window[axis])) * np.float32(1 / cell) + np.float32(BEFORE)
        inside = (t >= 0) & (t < ALONG)
        return np.where(inside, t, 0).astype(np.int32), inside

    def surface(
        self, box: Box, thickness: float | None = None, falloff: float | None = None
    ) -> FrontSurface | None:
        """Cut out the surface under a gesture.

        Cells that stay see-through take the depth of their neighbours, so that neither stray splats nor gaps
        between splats make holes.

        Parameters
        ----------
        box : least x, y and largest x, y, pixels; that of the shape with its feather
        thickness, falloff : units of camera space; None takes two cells

        Returns
        -------
        None where no splat lies under the box, which grows to whole cells
        """
        if box[2] <= box[0] or box[3] <= box[1]:
            return None
        return self._over(box)._cut_out(box, thickness, falloff)

    def _over(self, box: Box) -> DepthPicture:
        """Return this picture, or that of another window where a gesture does not meet this one's."""
        corner = tuple(_corner(box, self.view.window, axis) for axis in (0, 1))
        if corner == self.view.window[:2]:
            return self
        if self._beside is None or self._beside.view.window[:2] != corner:
            seen = Preview(self.view.panned(*corner), self._seen.points, self._seen.threads)
            self._beside = DepthPicture(seen, self._opacities, self._scales)
        return self._beside

    def _cut_out(self, box: Box, thickness: float | None, falloff: float | None) -> FrontSurface | None:
        """Cut out what lies under a gesture; see `surface`."""
        times = 1
        while not _fits(*(self._span(box, axis, times) for axis in (0, 1))):
            times += max(times // 8, 1)
        columns, rows = self._span(box, 0, times), self._span(box, 1, times)
        cells = self._of_size(times)
        kept = np.flatnonzero(
            (cells.column >= columns.start)
            & (cells.column < columns.stop)
            & (cells.row >= rows.start)
            & (cells.row < rows.stop)
        )
        if not len(kept):
            return None
        depth = cells.median[kept] if np.isfinite(cells.median[kept]).any() else cells.first[kept]
        picture = np.full((len(rows), len(columns)), np.inf, np.float32)
        picture[cells.row[kept] - rows.start, cells.column[kept] - columns.start] = depth
        size, (left, bottom) = self.cell * times, self.view.window[:2]
        reach = 2 * size / _pixels(self.view, float(np.median(depth[np.isfinite(depth)])))
        return FrontSurface(
            (
                left + columns.start * size,
                bottom + rows.start * size,
                left + columns.stop * size,
                bottom + rows.stop * size,
            ),
            picture.shape,  # type: ignore[arg-type]
            filled(least_around(picture)).astype("<f4").tobytes(),
            reach if thickness is None else thickness,
            reach if falloff is None else falloff,
        )

    def _span(self, box: Box, axis: int, times: int) -> range:
        """Return the columns or rows that a box meets."""
        size, start = self.cell * times, self.view.window[axis]
        ends = np.clip(
            (np.array([box[axis], box[axis + 2]]) - start) / size, -FARTHEST / times, FARTHEST / times
        )
        low, high = np.floor(ends).astype(int).tolist()
        return range(low, high + 1)

    def _of_size(self, times: int) -> Cells:
        """Return cells of so many times the smallest size, taken once."""
        if times not in self._sizes:
            self._sizes[times] = _cells(self._keys(self.cell * times), self._least)
        return self._sizes[times]


def front_surface(
    view: Viewpoint,
    points: Floats,
    box: Box,
    opacities: Floats | None = None,
    scales: Floats | None = None,
    thickness: float | None = None,
    falloff: float | None = None,
) -> FrontSurface | None:
    """Take the surface of splats under one gesture; see `DepthPicture` for the parameters, and for many."""
    picture = DepthPicture(Preview(view, points), opacities, scales)
    return picture.surface(box, thickness, falloff)


def _corner(box: Box, window: Box, axis: int) -> float:
    """Return where the window begins along an axis, or the one of its size beside it that a box begins in."""
    start, size = window[axis], window[2 + axis]
    if box[axis] < start + size and box[2 + axis] > start:
        return start
    return start + size * float(np.clip(np.floor((box[axis] - start) / size), -FARTHEST, FARTHEST))


def _cell_size(seen: Preview) -> float:
    """Return the side, pixels, of cells that hold the wanted number of splats where there are any."""
    width, height = seen.viewpoint.window[2:]
    everything = np.count_nonzero(seen.at.seen)
    cell = np.sqrt(width * height) / FIRST
    for side, occupied, count in _grids(seen) if everything else ():
        cell = side * np.sqrt(occupied * SPLATS_PER_CELL / max(count, 1))
        if occupied * SPLATS_PER_CELL <= count > 0 or (occupied <= 4 and count == everything):
            break
    return max(float(cell), max(width, height) / FINEST)


def _grids(seen: Preview) -> Iterator[tuple[float, int, int]]:
    """Yield the side of a grid's cells, pixels, how many of them hold splats, and how many splats those are.

    The grids lie over the window, each with cells of twice the size, then over twice the window (a script's
    can be small, or beside all splats), and so on.
    """
    left, bottom, width, height = seen.viewpoint.window
    at, first = seen.at, np.sqrt(width * height) / FIRST
    columns = int(width / first) + 1
    for times in (2.0 ** np.arange(WIDEST)).tolist():
        x, y = at.x - (left + width * (1 - times) / 2), at.y - (bottom + height * (1 - times) / 2)
        inside = (x >= 0) & (x < width * times) & (y >= 0) & (y < height * times)
        column, row = (np.divide(p[inside], first * times).astype(int) for p in (x, y))
        row, column = np.divmod(np.flatnonzero(np.bincount(row * columns + column)), columns)
        count = int(np.count_nonzero(inside))
        for doubled in range(FIRST.bit_length() - 1):
            occupied = len(np.unique((row >> doubled) * columns + (column >> doubled)))
            yield first * times * 2**doubled, occupied, count


def _depths(view: Viewpoint, points: Floats) -> NDArray[np.float32]:
    """Return depths in single precision, relative to the first point as for pixels."""
    with np.errstate(all="ignore"):  # points that are not finite are in no cell
        if not len(points) or not np.isfinite(points[0]).all():
            return view.depth(points).astype(np.float32)
        depth = (points - points[0]).astype(np.float32) @ view.depth_gradient.astype(np.float32)
        return depth + np.float32(view.depth(points[:1])[0])


def _darkness(hidden: Floats | None) -> NDArray[np.float16]:
    """Return ``-log`` of what splats let pass, at most 15."""
    if hidden is None:
        return np.array([15], np.float16)
    return (-np.log1p(-np.clip(hidden, 0, 1 - 3e-7))).astype(np.float16)


def _cells(keys: NDArray[np.uint64], least: np.float32) -> Cells:
    """Return the cells of splats by their keys, whose depths count from the least one."""
    keys = np.sort(keys)
    keys = keys[: np.searchsorted(keys, NOWHERE)]
    cell = (keys >> np.uint64(40)).astype(np.int32)
    start = np.flatnonzero(np.diff(cell, prepend=-1))
    end = np.append(start[1:], len(keys)).astype(np.intp)
    darkness = keys.astype(np.uint16).view(np.float16)
    passed = np.concatenate([[0.0], np.cumsum(darkness, dtype=np.float64)])
    dark = np.searchsorted(passed[1:], passed[start] + HALF_DARK)
    median = np.where(dark < end, _key_depths(keys, np.minimum(dark, end - 1)) + least, np.float32(np.inf))
    row, column = np.divmod(cell[start], ALONG)
    return Cells(column - BEFORE, row - BEFORE, median, _key_depths(keys, start) + least)


def _key_depths(keys: NDArray[np.uint64], rows: NDArray[np.intp]) -> NDArray[np.float32]:
    """Return the depths in some keys."""
    return ((keys[rows] >> np.uint64(16)).astype(np.uint32) << np.uint32(8)).view(np.float32)


def _fits(columns: range, rows: range) -> bool:
    return max(len(columns), len(rows)) <= LONGEST and len(columns) * len(rows) <= MOST_CELLS


def _focal(view: Viewpoint) -> float:
    """Return how many pixels a unit of camera space is long where the homogeneous coordinate is 1."""
    return 0.5 * abs(view.projection[0][0]) * view.window[2]


def _pixels(view: Viewpoint, depth: float) -> float:
    """Return how many pixels a unit of camera space is long at a depth."""
    w = view.projection[3][3] - view.projection[3][2] * depth
    return _focal(view) / max(w, 1e-12)


def least_around(picture: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the least of each cell and its eight neighbours."""
    across = picture.copy()
    np.minimum(across[:, 1:], picture[:, :-1], out=across[:, 1:])
    np.minimum(across[:, :-1], picture[:, 1:], out=across[:, :-1])
    least = across.copy()
    np.minimum(least[1:], across[:-1], out=least[1:])
    np.minimum(least[:-1], across[1:], out=least[:-1])
    return least


def filled(picture: NDArray[np.float32]) -> NDArray[np.float32]:
    """Let cells that are not finite take the least of their neighbours until there are none left."""
    while not np.isfinite(picture).all():
        picture = np.where(np.isfinite(picture), picture, least_around(picture))
    return picture
