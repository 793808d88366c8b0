"""What layers select is remembered between steps, and never wrongly."""

import json

import bpy
import numpy as np
import pytest
from drawn_weights import add_armature, add_splats, select

from gaussianimate.core.selection.skin import stack_to_skin
from gaussianimate.gaussianimate_addon.attributes import read_attribute, write_attribute
from gaussianimate.gaussianimate_addon.skin_attributes import BASE, read_skin
from gaussianimate.gaussianimate_addon.weights.layer_list import layer_list
from gaussianimate.gaussianimate_addon.weights.layers import MEMORY, read_layers, update_weights

ops = bpy.ops.gaussianimate
VIEW = {
    "view": [[1, 0, 0, -1.5], [0, 0, 1, 0], [0, -1, 0, -5], [0, 0, 0, 1]],
    "projection": [[2, 0, 0, 0], [0, 2, 0, 0], [0, 0, -1, -0.2], [0, 0, -1, 0]],
    "window": [0, 0, 600, 600],
}


@pytest.fixture
def drawn(empty_scene):
    object, armature = add_splats(empty_scene), add_armature(empty_scene)
    select(object)
    ops.bind(armature=armature.name, method="ENVELOPE")
    for bone, box in (("arm.L", [[150, 200], [330, 400]]), ("arm.R", [[280, 200], [450, 400]])):
        ops.add_selection_layer(
            bone=bone, shape="RECTANGLE", points=json.dumps(box), view=json.dumps(VIEW), smoothness=80
        )
    return object


def anew(object):
    """The skin without anything remembered."""
    positions = read_attribute(object.data, "position").astype(np.float64)
    return stack_to_skin(read_layers(object), positions, base=read_skin(object.data, BASE))


def check(object):
    found, expected = read_skin(object.data), anew(object)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.weights, expected.weights)
    np.testing.assert_array_equal(found.gradients, expected.gradients)
    return found


def test_numbers_that_are_dragged(drawn):
    check(drawn)
    line = layer_list(drawn).lines[1]
    seen = set()
    for strength, smoothness in ((0.5, 80), (0.4, 80), (0.4, 20), (1.0, 80)):
        line.strength, line.smoothness = strength, smoothness
        seen.add(check(drawn).weights.tobytes())
        assert MEMORY.bytes > 0
    assert len(seen) == 4


def test_splats_that_moved_are_evaluated_anew(drawn):
    before = check(drawn)
    positions = read_attribute(drawn.data, "position")
    write_attribute(drawn.data, "position", "FLOAT_VECTOR", positions[::-1] + np.float32(0.05))
    update_weights(drawn)
    assert (check(drawn).weights != before.weights).any()


def test_another_file_needs_the_room(drawn):
    assert MEMORY.bytes > 0
    bpy.ops.wm.read_homefile(app_template="", use_empty=True)
    assert MEMORY.bytes == 0
