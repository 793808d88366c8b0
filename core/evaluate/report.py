"""Measurements as a table and as one JSON object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from ..capture import Capture
from ..peak_memory import peak_memory_mb
from .measure import Measurement
from .run import SplitReport

COLUMNS = ("RMSE", "% diagonal", "p95 %", "ms/frame", "build s", "MB")


def as_object(
    capture: Capture, reports: Sequence[SplitReport], given: bool, partmm: str
) -> dict[str, object]:
    """Everything measured, ready for `json.dumps`; with several folds each method holds their mean and them.

    given : the skeleton is the capture's own
    """
    methods: dict[str, dict[str, object]] = {}
    for name in reports[0].methods:
        several = [report.methods[name] for report in reports]
        methods[name] = _figures(several, reports)
    if "partmm" in methods:
        methods["partmm"]["mode"] = partmm
    return {
        "capture": capture.name,
        "points": capture.point_count,
        "skeleton": "given" if given else "extracted",
        "poses": poses_sentence(given),
        "diagonal": reports[0].diagonal,
        "methods": methods,
        "floor": _figures([report.floor for report in reports], reports),
        "splits": [
            {key: value for key, value in asdict(report).items() if key not in ("methods", "floor")}
            for report in reports
        ],
        "peak_memory_mb": peak_memory_mb(),
    }


def _figures(several: Sequence[Measurement], reports: Sequence[SplitReport]) -> dict[str, object]:
    figures: dict[str, object] = asdict(Measurement.mean(several))
    if len(several) > 1:
        figures["folds"] = [
            {"split": report.split, **asdict(one)} for one, report in zip(several, reports, strict=True)
        ]
    return figures


def poses_sentence(given: bool) -> str:
    """Where the poses of the held-out frames come from."""
    if given:
        return "the capture's own skeleton, in the held-out frames too"
    return "joints found in the training frames, their rotations fitted to the held-out frames"


def table(reports: Sequence[SplitReport], given: bool) -> str:
    """The figures as text, a block for each split and one for their mean."""
    blocks = [f"poses: {poses_sentence(given)}"]
    for report in reports:
        head = (
            f"{report.split}: {report.train_frames} frames to learn from, {report.test_frames} held out, "
            f"{report.bones} bones, {report.joints} joints, rig {report.rig_seconds:.1f} s"
        )
        blocks.append(f"{head}\n{_block(report.methods, report.floor)}")
        blocks += [f"note: {note}" for note in report.notes]
    if len(reports) > 1:
        means = {name: Measurement.mean([r.methods[name] for r in reports]) for name in reports[0].methods}
        lowest = Measurement.mean([r.floor for r in reports])
        blocks.append(f"mean of {len(reports)} folds\n{_block(means, lowest)}")
    return "\n\n".join(blocks)


def _block(methods: dict[str, Measurement], lowest: Measurement) -> str:
    lines = ["{:<10}".format("method") + "".join(f"{column:>12}" for column in COLUMNS)]
    lines += [_line(name, one) for name, one in methods.items()]
    floor = (f"{x:>12.4g}" for x in (lowest.rmse, lowest.rmse_percent_diagonal, lowest.p95_percent_diagonal))
    lines.append(f"{'(floor)':<10}{''.join(floor)}  outer bones fitted to the held-out frames themselves")
    return "\n".join(lines)


def _line(name: str, one: Measurement) -> str:
    figures = (
        one.rmse,
        one.rmse_percent_diagonal,
        one.p95_percent_diagonal,
        one.ms_per_frame,
        one.build_seconds,
        one.memory_mb,
    )
    return f"{name:<10}" + "".join(f"{x:>12.4g}" for x in figures)
