"""A given skeleton as one tree of joints that turn: rigs hold helpers and loose joints that are not.

Animation rigs hang feet, hips and targets of inverse kinematics on a common root and move them by
constraints. What carries nothing of the capture is left out; what slides on its parent is hung on the joint
it turns about.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .motion_affinity import parent_slides
from .tree import KinematicTree, parents_first

F64 = NDArray[np.float64]
SLIDES = 0.005  # of the points' box diagonal, root mean square: beyond that a joint slides on its parent
IDLE = 0.01  # of all the outer bones: less at the top of the tree is given up for a root that moves
STEADIER = 0.5  # a new parent must leave less than this share of the sliding


@dataclass
class _Loose:
    """A tree under repair; joints keep their first index until the end."""

    positions: F64
    parents: NDArray[np.int32]
    motions: F64
    masses: F64
    kept: NDArray[np.bool_]
    main: int = 0  # the root that stays

    def __post_init__(self) -> None:
        self.main = self.heaviest(np.flatnonzero(self.parents < 0))

    def heaviest(self, joints: NDArray[np.intp]) -> int:
        """The one of some joints that carries most, with all that hangs on it."""
        return int(joints[np.argmax([self.masses[self.below(joint)].sum() for joint in joints.tolist()])])

    def below(self, joint: int) -> NDArray[np.bool_]:
        """Mask (J,) of a joint and all that hangs on it."""
        within = np.zeros(len(self.parents), bool)
        within[joint] = True
        while True:
            more = within | ((self.parents >= 0) & within[self.parents])
            if (more == within).all():
                return within
            within = more

    def slides(self) -> F64:
        """(J,) how far joints stray from their parents, infinite for further roots."""
        away = parent_slides(KinematicTree(self.positions, self.parents), self.motions)
        roots = np.flatnonzero((self.parents < 0) & self.kept)
        away[roots[roots != self.main]] = np.inf
        return np.where(self.kept, away, 0)

    def steadiest(self, joint: int) -> tuple[int, float]:
        """The joint, none of those below, that a joint strays least from when rigid on it, and how far."""
        choices = np.flatnonzero(self.kept & ~self.below(joint))
        place = self.positions[joint]
        moved = self.motions[..., :3] @ place + self.motions[..., 3]
        away = np.sqrt(((moved[:, choices] - moved[:, [joint]]) ** 2).sum(axis=-1).mean(axis=0))
        near = np.linalg.norm(self.positions[choices] - place, axis=1)
        best = int(np.argmin(away + 1e-3 * near))
        return int(choices[best]), float(away[best])


def mend_tree(
    names: Sequence[str],
    tree: KinematicTree,
    motions: F64,
    affinity: F64,
    rest: NDArray[np.floating],
) -> tuple[KinematicTree, NDArray[np.intp], tuple[str, ...], str]:
    """Return one tree, its joints (J',) among those given, what was changed, and which slide all the same.

    Parameters
    ----------
    names : J names, for the notes
    tree : joints in the rest pose, perhaps with several roots (-1); motions : (F, J, 3, 4) from there
    affinity : (B, J) what each joint carries; rest : (N, 3) points, for the size
    """
    size = float(np.linalg.norm(np.ptp(rest, axis=0))) or 1.0
    loose = _Loose(
        tree.positions, tree.parents.copy(), motions, affinity.sum(axis=0), np.ones(len(tree), bool)
    )
    _drop_idle(loose, SLIDES * size)
    _drop_top(loose, SLIDES * size)
    moved = _hang_anew(loose, SLIDES * size)
    notes = [
        _note(names, ~loose.kept, "{} of the skeleton that carry nothing and slide were left out: {}."),
        _note(names, moved & loose.kept, "{} that slide on their parents were hung on others: {}."),
    ]
    sliding = _note(names, loose.slides() > SLIDES * size, "{1}")
    kept = np.flatnonzero(loose.kept)
    renumber = np.full(len(tree), -1)
    renumber[kept] = np.arange(len(kept))
    parents = np.where(loose.parents[kept] >= 0, renumber[loose.parents[kept]], -1)
    if (parents >= np.arange(len(kept))).any():
        order = parents_first(parents)
        place = np.argsort(order)
        kept, parents = kept[order], np.where(parents[order] >= 0, place[parents[order]], -1)
    mended = KinematicTree(tree.positions[kept], parents.astype(np.int32))
    return mended, kept, tuple(filter(None, notes)), sliding


def _drop_idle(loose: _Loose, tolerance: float) -> None:
    """Leave out what slides and carries nothing, with all that hangs on it."""
    slides = loose.slides()
    for joint in np.flatnonzero(slides > tolerance):
        branch = loose.below(int(joint))
        if loose.masses[branch].sum() == 0:
            loose.kept &= ~branch


def _hang_anew(loose: _Loose, tolerance: float) -> NDArray[np.bool_]:
    """Give joints that slide, and further roots, a parent they turn about; returns the mask (J,) of those.

    The one that fits its new parent best comes first: it may be what another one could have hung on.
    """
    moved = np.zeros(len(loose.parents), bool)
    while True:
        slides = loose.slides()
        found = []
        for joint in np.flatnonzero((slides > tolerance) & ~moved).tolist():
            parent, left = loose.steadiest(joint)
            if left < STEADIER * slides[joint]:
                found.append((left, joint, parent))
        if not found:
            return moved
        _, joint, parent = min(found)
        loose.parents[joint] = parent
        moved[joint] = True


def _drop_top(loose: _Loose, tolerance: float) -> None:
    """Leave out joints above all others that carry next to nothing, where what carries most slides on them.

    That becomes the root, the only joint that may move; what else hung on them become further roots.
    """
    slides, top, joint = loose.slides(), [], loose.main
    while loose.masses[joint] < IDLE * loose.masses.sum():
        children = np.flatnonzero(loose.kept & (loose.parents == joint))
        if not len(children):
            return
        top.append(joint)
        joint = loose.heaviest(children)
        if slides[joint] > tolerance:
            loose.kept[top] = False
            loose.parents[np.isin(loose.parents, top)] = -1
            loose.main, top = joint, []
        elif len(children) > 1:
            return


def _note(names: Sequence[str], chosen: NDArray[np.bool_], text: str) -> str:
    count = int(chosen.sum())
    if not count:
        return ""
    listed = [names[j] for j in np.flatnonzero(chosen).tolist()]
    shown = ", ".join(listed[:6]) + (f" and {count - 6} more" if count > 6 else "")
    return text.format(f"{count} joint{'s' if count > 1 else ''}", shown)
