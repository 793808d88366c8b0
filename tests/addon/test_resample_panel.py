"""What the Resample panel says, and the overlay it shows."""

import bpy
import numpy as np
import pytest
from drawn_panels import draw, said
from drawn_weights import add_armature, add_splats, select
from resampling import EPSILON, bent_bar, depths, finished, ops, origins, whole

from gaussianimate.core.errors import RigError
from gaussianimate.core.progress import no_progress
from gaussianimate.gaussianimate_addon.drawer.viewport import DRAWER
from gaussianimate.gaussianimate_addon.resampling.overlay import show_overlay
from gaussianimate.gaussianimate_addon.resampling.request import Choice, request_steps
from gaussianimate.gaussianimate_addon.resampling.settings import resample_settings
from gaussianimate.gaussianimate_addon.resampling.task import solve


@pytest.fixture
def bar(empty_scene):
    yield bent_bar(empty_scene)
    DRAWER.reset()


def test_nothing_rigged(empty_scene):
    assert "Select rigged Gaussian splats" in said("resample")
    add_splats(empty_scene)
    assert "'bar' is not rigged" in said("resample")


def test_buttons_use_the_settings(bar):
    settings = resample_settings(bpy.context)
    buttons = draw("resample").buttons
    assert set(buttons) == {"Show Bent Splats", "Resample Splats"}
    for button in buttons.values():
        assert (button.mode, button.epsilon, button.budget) == ("POSE", 0.0, 3.0)
        assert not hasattr(button, "frame_start")
    settings.mode, settings.automatic, settings.epsilon, settings.custom_range = "ACTION", False, 0.5, True
    settings.start, settings.end, settings.step = 3, 7, 2
    button = draw("resample").buttons["Resample Splats"]
    assert (button.mode, button.epsilon) == ("ACTION", 0.5)
    assert (button.frame_start, button.frame_end, button.frame_step) == (3, 7, 2)
    assert button.budget == settings.budget
    settings.mode = "UNIFORM"
    assert not hasattr(draw("resample").buttons["Resample Splats"], "budget"), "which it does not show"


def test_what_will_be_split_is_what_is_split(bar):
    object, _ = bar
    assert ops.show_bent(epsilon=EPSILON) == {"FINISHED"}
    over = DRAWER.overlay
    assert over.uid == object.session_uid and len(over.values) == 200 and whole(object) is None
    text, layout = over.text, draw("resample")
    assert text in " ".join(layout.texts) and "Hide Bent Splats" in layout.buttons
    ops.resample(epsilon=EPSILON)
    assert DRAWER.overlay is None
    split = np.bincount(origins(object)) > 1
    np.testing.assert_array_equal(over.values > 0, split)
    deepest = np.zeros(200)
    np.maximum.at(deepest, origins(object), depths(object))
    assert (np.diff(over.values[np.argsort(deepest, kind="stable")]) >= 0).all()
    assert text == f"{split.sum()} of 200 splats ({split.sum() / 2:.0f} %) would be split, " + (
        f"{len(object.data.points)} after, epsilon {EPSILON} m"
    )
    assert text.replace("would be split", "split") in said("resample")

    ops.show_bent(epsilon=EPSILON)
    assert DRAWER.overlay.text == text, "of the whole splats"
    np.testing.assert_array_equal(DRAWER.overlay.values > 0, split[origins(object)])
    ops.hide_bent()
    assert DRAWER.overlay is None


def test_splats_that_changed_while_bent_ones_were_looked_for_are_told(bar):
    object, _ = bar
    steps = request_steps(bpy.context, object, Choice("POSE", EPSILON))
    answer = solve(finished(steps), no_progress)
    object.data.resize(150)
    with pytest.raises(RigError, match="'bar' changed while bent ones were looked for; show them again"):
        show_overlay(object, answer)
    assert DRAWER.overlay is None


def test_the_overlay_goes_with_the_splats_it_is_of(bar):
    object, _ = bar
    ops.show_bent(epsilon=EPSILON)
    ops.resample(mode="UNIFORM")
    ops.show_bent(epsilon=EPSILON)
    ops.restore_splats()
    assert DRAWER.overlay is None and "after" not in said("resample")


def test_out_of_date(bar):
    object, _ = bar
    hand_made = add_armature(bpy.context.scene, object.matrix_world)
    select(object)
    ops.resample(epsilon=EPSILON)
    layout = draw("resample")
    assert "Restore Whole Splats" in layout.buttons and "Weights changed" not in " ".join(layout.texts)
    ops.show_bent(epsilon=EPSILON)
    assert "show them again" not in said("resample")
    ops.bind(armature=hand_made.name, method="ENVELOPE")
    assert "Weights changed since: resample again" in said("resample")
    assert "Weights changed since; show them again" in said("resample")
    ops.restore_splats()
    assert "Weights changed" not in said("resample")


def test_the_bake_panel_offers_it(bar):
    settings = resample_settings(bpy.context)
    assert not draw("bake").buttons["Bake Frames"].resample
    settings.bake, settings.automatic, settings.epsilon = True, False, 0.25
    for name, button in draw("bake").buttons.items():
        if name.startswith(("Bake", "Export")):
            assert button.resample and button.epsilon == 0.25
