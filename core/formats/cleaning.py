"""What is wrong with splats as they stand in files, said and mended before anything draws them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..cloud import GaussianCloud
from .ply_reader import NOT_FINITE, ZERO_QUATERNION

# The median splat of a real scene is a hundredth of it or less; one of this share hides everything. A toy of
# a few large splats is legitimate: only a crowd is judged.
SUSPICIOUS_SHARE, CROWD = 0.1, 100
# Linear scales read as logarithms are all above 1, which so large a share of a scene never is.
LINEAR_SHARE = 0.02


def fault_notes(faults: NDArray[np.uint8]) -> tuple[str, ...]:
    """Say how many rows are unusable and why.

    Parameters
    ----------
    faults : (N,) uint8 as of a RawCloud
    """
    bad, count = int(np.count_nonzero(faults)), len(faults)
    if not bad:
        return ()
    reasons = {"a value that is not finite": NOT_FINITE, "a zero quaternion": ZERO_QUATERNION}
    numbers = {text: int(np.count_nonzero(faults == fault)) for text, fault in reasons.items()}
    causes = " and ".join(f"{number:,} with {text}" for text, number in numbers.items() if number)
    notes = (f"{bad:,} of {count:,} splats were dropped: {causes}.",)
    if 2 * bad > count:
        share = 100 * bad / count
        notes += (
            f"Warning: {share:.0f} % of the splats were unusable, so the file was probably exported wrongly.",
        )
    return notes


def clamp_scales(cloud: GaussianCloud) -> tuple[GaussianCloud, tuple[str, ...]]:
    """Limit every splat to the size of the scene, and say so where sizes look wrong.

    Scales that were exponentiated twice reach millions of metres and stall the graphics card; scales stored
    linear instead of logarithmic make every splat about a metre. The first are limited to the diagonal of
    the box around the centres, both are reported with the ratio of the median size to that diagonal.

    Parameters
    ----------
    cloud : N usable splats; a scene of no extent (one splat) gives no measure and is left alone
    """
    low, high = cloud.positions.min(axis=0), cloud.positions.max(axis=0)
    diagonal = float(np.linalg.norm(high.astype(np.float64) - low))
    if diagonal == 0:
        return cloud, ()
    sample = cloud.scales[:: max(1, len(cloud) // 100_000)]
    median = float(np.median(sample.max(axis=1)))
    notes = _size_notes(sample, median, diagonal)
    limit = np.float32(min(diagonal, float(np.finfo(np.float32).max)))
    if cloud.scales.max() > limit:
        clamped = int(np.count_nonzero((cloud.scales > limit).any(axis=1)))
        cloud = replace(cloud, scales=np.minimum(cloud.scales, limit))
        notes += (
            f"{clamped:,} splats were larger than the whole scene and were limited to {diagonal:.3g} m.",
        )
    return cloud, notes


def _size_notes(sample: NDArray[np.float32], median: float, diagonal: float) -> tuple[str, ...]:
    share = median / diagonal
    if len(sample) < CROWD:
        return ()
    if sample.min() >= 1 and share > LINEAR_SHARE and np.log(median) < SUSPICIOUS_SHARE * diagonal:
        cause = "scales look linear where logarithms are expected"
    elif share > SUSPICIOUS_SHARE:
        cause = "scales look exponentiated twice"
    else:
        return ()
    return (f"Warning: the median splat is {share:.3g} times the size of the scene: its {cause}.",)
