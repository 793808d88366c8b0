"""Every way of answering new poses that is measured, by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..errors import CaptureError
from ..motion.database import Residuals
from ..progress import Progress
from .fitted import Fitted, residual_method
from .subject import Query, Training

PARTMM = ("match", "kernel", "auto")


def fit_matching(learned: Training, progress: Progress, mode: str) -> Fitted:
    """Whole-body ("full") or partwise ("match") motion matching; the learned "kernel"; or both, "auto"."""
    base = learned.database
    if mode in ("full", "match"):
        from ..motion.database import full_body
        from ..motion.match import match_motion

        keys = full_body(base) if mode == "full" else base

        def matched(query: Query) -> Residuals:
            return match_motion(keys, query.rotations, query.clips, query.fps)

        return residual_method(learned, matched, keys.nbytes, earlier_seconds=learned.database_seconds)
    from ..motion.auto import LEAST_CLIPS, AutoPredictor

    if mode == "auto" and base.clip_count < LEAST_CLIPS:
        predictor, earlier, size = AutoPredictor.of(base), 0.0, 0
        note = f"{base.clip_count} clips are too few for the kernel: auto is match"
    else:
        kernel, earlier = learned.kernel
        size = sum(array.nbytes for array in kernel.to_arrays().values())
        predictor, note = AutoPredictor.of(base, kernel) if mode == "auto" else kernel, ""

    def predicted(query: Query) -> Residuals:
        return predictor.predict(query.rotations, query.root_translations, query.fps, query.clips)

    size += base.nbytes if mode == "auto" else 0
    earlier += learned.database_seconds
    return residual_method(learned, predicted, size, earlier_seconds=earlier, note=note)


def _fit_lbs(learned: Training, progress: Progress) -> Fitted:
    from .baselines.rigid import fit_lbs

    return fit_lbs(learned, progress)


def _fit_bob(learned: Training, progress: Progress) -> Fitted:
    from .baselines.rigid import fit_bag_of_bones

    return fit_bag_of_bones(learned)


def _fit_knn(learned: Training, progress: Progress) -> Fitted:
    from .baselines.neighbours import fit_neighbours

    return fit_neighbours(learned)


def _fit_ridge(learned: Training, progress: Progress) -> Fitted:
    from .baselines.linear import fit_ridge

    return fit_ridge(learned)


def _fit_network(learned: Training, progress: Progress, recurrent: bool, motion: bool) -> Fitted:
    from .baselines.networks import fit_network

    return fit_network(learned, recurrent, motion, progress)


Fit = Callable[[Training, Progress], Fitted]
METHODS: dict[str, Fit] = {
    "lbs": _fit_lbs,
    "bob": _fit_bob,
    "knn": _fit_knn,
    "ridge": _fit_ridge,
    "mlp": partial(_fit_network, recurrent=False, motion=False),
    "gru": partial(_fit_network, recurrent=True, motion=False),
    "mlp+": partial(_fit_network, recurrent=False, motion=True),
    "gru+": partial(_fit_network, recurrent=True, motion=True),
    "fullmm": partial(fit_matching, mode="full"),
    **{mode: partial(fit_matching, mode=mode) for mode in PARTMM},
}


def method_fits(names: tuple[str, ...], partmm: str = "auto") -> dict[str, Fit]:
    """The methods of those names, in the order given; "partmm" is the mode `partmm`.

    Raises
    ------
    CaptureError : a name is unknown or comes twice
    """
    if partmm not in PARTMM:
        raise CaptureError(f"PartMM can be {', '.join(PARTMM)}, not '{partmm}'.")
    known = {**METHODS, "partmm": METHODS[partmm]}
    unknown = next((name for name in names if name not in known), None)
    if unknown is not None or not names:
        raise CaptureError(f"There is no method called '{unknown or ''}'; there are {', '.join(known)}.")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise CaptureError(f"The method {twice} is asked for twice.")
    return {name: known[name] for name in names}
