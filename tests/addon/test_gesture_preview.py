"""What is seen of a gesture while it is drawn is what it selects when it is done."""

import numpy as np
import pytest
from drawn_weights import add_splats

from gaussianimate.core.render.camera import Camera
from gaussianimate.core.selection.feather import Feather
from gaussianimate.core.selection.layer import SelectionLayer
from gaussianimate.core.selection.preview import preview
from gaussianimate.core.selection.viewpoint import Viewpoint
from gaussianimate.gaussianimate_addon.attributes import read_attribute
from gaussianimate.gaussianimate_addon.drawer.viewport import DRAWER
from gaussianimate.gaussianimate_addon.weights.gesture_view import GestureView
from gaussianimate.gaussianimate_addon.weights.gestures import make_shape, surface_below


@pytest.fixture
def view() -> Viewpoint:
    camera = Camera.perspective((1.5, -4, 1), (1.5, 0, 0), (0, 0, 1), 0.9, 640, 480, 0.1, 100)
    return Viewpoint(camera.view, camera.projection, (0, 0, 640, 480))


def test_the_surface_of_the_preview_is_that_of_the_layer(empty_scene, view):
    object = add_splats(empty_scene, 3000)
    seen, feather = GestureView(object, view), Feather(30)
    fronts = []
    for corner in ((200, 240), (420, 300), (600, 460), (330, 250)):
        shape = make_shape("RECTANGLE", [[180, 200], corner])
        layer = SelectionLayer("arm", view, shape, feather)
        fronts.append(seen.front(object, layer))
        assert fronts[-1] is not None
        assert fronts[-1] == surface_below(object, view, shape, feather)
    assert len({front.shape for front in fronts}) > 1
    away = SelectionLayer("arm", view, make_shape("RECTANGLE", [[0, 0], [9, 9]]), Feather(0))
    assert seen.front(object, away) is None, "no splats there"
    point = SelectionLayer("arm", view, make_shape("RECTANGLE", [[200, 200], [200, 200]]))
    assert seen.front(object, point) is None


def test_the_mask_of_the_preview_keeps_to_the_front(empty_scene, view):
    object = add_splats(empty_scene, 3000)
    seen = GestureView(object, view)
    shape = make_shape("LASSO", [[100, 150], [500, 130], [560, 330], [120, 300]])
    layer = SelectionLayer("arm", view, shape, Feather(25), 0.8)
    points = read_attribute(object.data, "position")
    masks = []
    try:
        for front in (None, seen.front(object, layer)):
            layer = SelectionLayer("arm", view, shape, Feather(25), 0.8, front=front)
            seen.show(layer)
            mask = DRAWER.mask
            assert mask is not None and mask.uid == object.session_uid
            np.testing.assert_array_equal(mask.values, preview(layer, points))
            masks.append(mask.values)
    finally:
        seen.stop()
    assert DRAWER.mask is None
    assert (masks[1] <= masks[0]).all() and 0.2 < masks[1].sum() / masks[0].sum() < 0.95
