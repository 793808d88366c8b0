"""The order of a view: sorted in a thread, taken over when it is done."""

import numpy as np
from drawn_scenes import DRAWER, items, plain, rigged
from mathutils import Matrix

from gaussianimate.gaussianimate_addon.drawer import order
from gaussianimate.gaussianimate_addon.drawer.draw import bone_moves


def test_order_is_sorted_in_a_thread_and_taken_over(drawn):
    from pictures import perspective

    rigged(count=500)
    drawn()
    atlas, camera, started = DRAWER.splats.atlas, perspective(), []
    view, shown = order.ViewOrder(), items()

    def follow(camera):
        moves = bone_moves(atlas, shown)
        view.follow(atlas, shown, moves, camera, lambda: started.append(1))
        return order.sort([atlas.spans[0]], order.order_key(atlas, shown, moves, camera))

    expected = follow(camera)
    assert not started and view.version == 1 and view.count == len(expected), "the first one is waited for"
    follow(camera)
    assert not started and view.version == 1
    turned = _turned(camera)
    expected = follow(turned)
    assert started == [1] and view.version == 1 and view.waiting
    view._pending[1].result(timeout=10)
    assert view.finished
    follow(turned)
    assert view.version == 2 and not view.waiting and started == [1]
    read = np.array(view.texture.read(), np.float32).ravel()[: view.count]
    np.testing.assert_array_equal(read, expected)


def test_a_sort_of_splats_that_are_gone_is_dropped(drawn):
    from pictures import perspective

    rigged(count=500)
    drawn()
    view, camera = order.ViewOrder(), perspective()
    atlas = DRAWER.splats.atlas
    view.follow(atlas, items(), bone_moves(atlas, items()), camera, lambda: None)
    view.follow(atlas, items(), bone_moves(atlas, items()), _turned(camera), lambda: None)
    assert view.waiting
    plain("other")
    drawn()
    both = DRAWER.splats.atlas
    assert both is not atlas
    view.follow(both, items(), bone_moves(both, items()), camera, lambda: None)
    assert not view.waiting and view.version == 2 and view.count > 500


def _turned(camera):
    from dataclasses import replace

    return replace(camera, view=np.array(Matrix.Rotation(0.2, 4, "Y")) @ camera.view)
