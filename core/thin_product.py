"""A small matrix times many columns, without the threads of the linear algebra.

OpenBLAS shares products of more than 2^18 multiplications among threads of its own, which wait for each other
at full speed. On top of our threads, and for products that are over at once, they take more than they give.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MOST = 200_000  # multiplications at once


def thin_product(matrix: NDArray[np.floating], columns: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return the product (M, N) of a matrix (M, K) with columns (K, N) of the same type."""
    count, step = columns.shape[1], max(MOST // max(matrix.size, 1), 1)
    result = np.empty((len(matrix), count), columns.dtype)
    for start in range(0, count, step):
        part = slice(start, start + step)
        np.matmul(matrix, columns[:, part], out=result[:, part])
    return result
