"""What the mouse has drawn so far, and what the keyboard types meanwhile (no bpy)."""

from __future__ import annotations

from typing import Any

APART = 3.0  # pixels between the points of a path
FEWEST = {"RECTANGLE": 2, "ELLIPSE": 2, "LASSO": 3, "STROKE": 1}  # points of a shape
LIGHTEST = 0.05  # pressure of a pen


class GesturePath:
    """The points of one gesture, pixels of the region. A lasso can have several outlines.

    Points bring the pressure of a pen, 0..1. Where it is 0 all along, the device measures none: full radius.
    """

    def __init__(self, shape: str) -> None:
        self.shape = shape
        self.rows: list[list[float]] = []  # x, y, pressure of the outline that is drawn now
        self.outlines: list[list[list[float]]] = []  # those before

    @property
    def empty(self) -> bool:
        """Whether nothing was drawn yet."""
        return not self.rows and not self.outlines

    def add(self, x: float, y: float, pressure: float = 1.0) -> None:
        """Go on to a point; one beside the last is left out, but for a pen that presses harder by then."""
        row = [float(x), float(y), float(pressure)]
        if self.shape in ("RECTANGLE", "ELLIPSE"):
            self.rows[1:] = [row]
        elif self.rows and max(abs(x - self.rows[-1][0]), abs(y - self.rows[-1][1])) < APART:
            self.rows[-1][2] = max(self.rows[-1][2], row[2])
        else:
            self.rows.append(row)

    def is_drawn(self) -> bool:
        """Whether the mouse was moved far enough to select something."""
        if self.outlines:
            return True
        if not self.rows or self.shape == "STROKE":
            return bool(self.rows)
        if self.shape == "LASSO":
            return len(self.rows) >= FEWEST["LASSO"]
        (ax, ay, _), (bx, by, _) = self.rows[0], self.rows[-1]
        return min(abs(bx - ax), abs(by - ay)) >= 1

    def close(self) -> None:
        """End an outline of a lasso, so that another can begin; one of too few points is dropped."""
        if len(self.rows) >= FEWEST["LASSO"]:
            self.outlines.append(self.rows)
        self.rows = []

    def points(self, radius: float) -> list[list[list[float]]]:
        """Return the outlines, at least one, as rows of x and y (a brush: and radius), filled up at first."""
        rings = [*self.outlines, self.rows] if self.rows else list(self.outlines)
        whole = [ring for ring in rings if len(ring) >= FEWEST[self.shape]] or rings[:1]
        filled = [ring + ring[-1:] * (FEWEST[self.shape] - len(ring)) for ring in whole]
        if self.shape != "STROKE":
            return [[[x, y] for x, y, _ in ring] for ring in filled]
        measured = any(pressure > 0 for ring in filled for *_, pressure in ring)
        return [
            [[x, y, radius * (max(pressure, LIGHTEST) if measured else 1.0)] for x, y, pressure in ring]
            for ring in filled
        ]


DIGITS = {
    name: str(digit)
    for digit, word in enumerate("ZERO ONE TWO THREE FOUR FIVE SIX SEVEN EIGHT NINE".split())
    for name in (word, f"NUMPAD_{digit}")
}
POINTS = ("PERIOD", "NUMPAD_PERIOD", "COMMA")
LONGEST = 7
RANGES = {"smoothness": (0.0, 1e5), "strength": (0.0, 1.0), "radius": (1.0, 1e5)}


class TypedNumber:
    """A number typed while drawing: digits set one of a gesture's numbers, Tab the next one."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names, self.text, self._before = names, "", 0.0
        self.name = names[0]

    def press(self, key: str, values: Any) -> bool:
        """Take a key; ``values`` has the numbers as attributes. Returns whether the key was one of these."""
        if key == "TAB":
            self.done()
            self.name = self.names[(self.names.index(self.name) + 1) % len(self.names)]
            return True
        if key == "BACK_SPACE":
            if self.text:
                self._set(self.text[:-1], values)
            return True
        mark = DIGITS.get(key) or ("." if key in POINTS else "")
        if not mark:
            return False
        if len(self.text) < LONGEST and not (mark == "." and "." in self.text):
            self._set(self.text + mark, values)
        return True

    def done(self) -> None:
        """Begin anew at the next digit."""
        self.text = ""

    def _set(self, text: str, values: Any) -> None:
        """Set the number; nothing typed gives back the one from before."""
        if not self.text:
            self._before = getattr(values, self.name)
        self.text = text
        low, high = RANGES[self.name]
        number = float(text) if text.strip(".") else 0.0
        setattr(values, self.name, min(max(number, low), high) if text else self._before)
