"""Curves over a setting as small SVG files, without any plotting library."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

WIDTH, HEIGHT, LEFT, BOTTOM = 420, 260, 50, 40
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd")
TEXT = '<text x="{:.0f}" y="{:.0f}" text-anchor="{}">{}</text>'


def save_plot(
    folder: Path | None,
    name: str,
    values: Sequence[float] | Sequence[str],
    curves: dict[str, list[float]],
    unit: str = "RMSE, % of the diagonal",
    prefix: str = "motion",
) -> None:
    """Write `folder`/`prefix`-`name`.svg of curves over values; names instead of numbers stand evenly."""
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    file = f"{prefix}-{name.replace(' ', '-').replace('_', '-')}.svg"
    (folder / file).write_text(plot(f"{name}: {unit}", values, curves), "utf-8")


def plot(title: str, values: Sequence[float] | Sequence[str], curves: dict[str, list[float]]) -> str:
    """The SVG of curves over values."""
    places = [float(i) if isinstance(value, str) else float(value) for i, value in enumerate(values)]
    top = 1.1 * max(max(curve) for curve in curves.values())
    at_x = partial(np.interp, xp=(min(places), max(places)), fp=(LEFT + 12, WIDTH - 20))
    at_y = partial(np.interp, xp=(0, top), fp=(HEIGHT - BOTTOM, 15))
    parts = [f'<path d="M{LEFT} 15V{HEIGHT - BOTTOM}H{WIDTH - 15}" fill="none" stroke="#555"/>']
    parts += [
        TEXT.format(at_x(x), HEIGHT - BOTTOM + 16, "middle", value)
        for x, value in zip(places, values, strict=True)
    ]
    parts += [TEXT.format(LEFT - 6, at_y(y) + 4, "end", f"{y:.2g}") for y in np.linspace(0, top, 5)]
    parts.append(TEXT.format(WIDTH / 2, HEIGHT - 6, "middle", title))
    for number, ((label, curve), colour) in enumerate(zip(curves.items(), COLOURS, strict=False)):
        points = " ".join(f"{at_x(x):.1f},{at_y(y):.1f}" for x, y in zip(places, curve, strict=True))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        place = f'x="{WIDTH - 20}" y="{30 + 14 * number}" text-anchor="end"'
        parts.append(f'<text {place} fill="{colour}">{label}</text>')
    style = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" font-family="sans-serif" font-size="11"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {style}>{"".join(parts)}</svg>\n'
