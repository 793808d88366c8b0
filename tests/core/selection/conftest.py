"""Views, shapes and layers the tests of selections share."""

import numpy as np
import pytest

from gaussianimate.core.render.camera import Camera
from gaussianimate.core.selection.feather import Feather
from gaussianimate.core.selection.layer import LayerStack, SelectionLayer
from gaussianimate.core.selection.shapes import Ellipse, Lasso, Rectangle, Stroke
from gaussianimate.core.selection.viewpoint import Viewpoint

WINDOW = (0, 0, 800, 600)


@pytest.fixture
def rng():
    return np.random.default_rng(2)


@pytest.fixture
def perspective() -> Viewpoint:
    camera = Camera.perspective((1, -4, 0.5), (0, 0, 0), (0, 0, 1), 0.9, 800, 600, 0.1, 100)
    return Viewpoint(camera.view, camera.projection, WINDOW)


@pytest.fixture
def orthographic() -> Viewpoint:
    camera = Camera.orthographic((3, -2, 0.5), (0, 0, 0), (0, 0, 1), 3, 800, 600, 0.1, 100)
    return Viewpoint(camera.view, camera.projection, WINDOW)


@pytest.fixture(params=["perspective", "orthographic"])
def viewpoint(request) -> Viewpoint:
    return request.getfixturevalue(request.param)


def star(points=24, radius=60, depth=30):
    k = np.arange(points)
    reach, angle = radius + depth * (-1.0) ** k, k * 2 * np.pi / points
    return np.stack([reach * np.cos(angle), reach * np.sin(angle)], axis=1)


def squiggle(centre=(0.0, 0.0), size=1.0) -> Stroke:
    points = np.array([[-100.0, -40], [-20, 30], [60, -10], [110, 60]])
    return Stroke(points * size + centre, np.array([12.0, 25, 8, 30]) * size)


# About the origin; every kind, upright and turned, thin and round, with a hole, crossing itself, with a
# stamp inside its neighbour.
SHAPES = {
    "rectangle": Rectangle((5, 7), (60, 25), 0.4),
    "upright rectangle": Rectangle.from_corners((-80, 40), (30, -10)),
    "ellipse": Ellipse((10, -5), (120, 40), 0.3),
    "tall ellipse": Ellipse((0, 0), (40, 120)),
    "circle": Ellipse((3, 4), (80, 80), 0.7),
    "thin ellipse": Ellipse((0, 0), (150, 3), 0.9),
    "star": Lasso((star(),)),
    "ring": Lasso((star(40, 90, 4), star(12, 40, 6))),
    "bow": Lasso((((-80, -50), (80, 60), (80, -50), (-80, 60)),)),
    "stroke": squiggle(),
    "stamp": Stroke(((10, 20),), (35,)),
    "swallowed stamp": Stroke(((-60, 0), (-50, 5), (70, 40)), (50, 20, 25)),
}


@pytest.fixture(params=list(SHAPES))
def shape(request):
    return SHAPES[request.param]


@pytest.fixture
def gestures(perspective, orthographic) -> LayerStack:
    """Four gestures on one bone: every shape, operation, feather and projection."""
    middle = np.array([400.0, 300])
    return LayerStack(
        ("arm",),
        (
            SelectionLayer(
                "arm", perspective, Ellipse(middle, (220, 140), 0.2), Feather(150), 0.9, "replace"
            ),
            SelectionLayer(
                "arm", orthographic, Lasso((middle + 2.5 * star(),)), Feather(80, "linear"), 0.6, "add"
            ),
            SelectionLayer(
                "arm", perspective, Rectangle((460, 250), (80, 60), 0.3), Feather(120), 0.8, "subtract"
            ),
            SelectionLayer(
                "arm", orthographic, squiggle(middle, 2), Feather(200, align="outside"), 0.95, "multiply"
            ),
        ),
    )
