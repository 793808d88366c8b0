"""The panel "3. Animate" beside an armature that splats were bound to, which has nothing to replay."""

import bpy
import pytest
from answering import learned_bar
from drawn_panels import draw
from drawn_weights import add_armature, add_splats, select

ops = bpy.ops.gaussianimate


def test_a_bound_armature_has_nothing_to_replay(empty_scene):
    object, _ = add_splats(empty_scene), add_armature(empty_scene)
    select(object)
    ops.bind(armature="hand made", method="EMPTY")
    found = draw("animate").buttons
    assert found["Pose Anew"].enabled and not found["Replay"].enabled
    with pytest.raises(RuntimeError, match="'hand made' has no captured motion to replay; Build Rig"):
        ops.set_motion(motion="REPLAY")


def test_a_rig_of_a_capture_can_be_replayed(empty_scene):
    _, armature, _ = learned_bar(empty_scene)
    select(armature)
    found = draw("animate").buttons
    assert found["Replay"].enabled and found["Pose Anew"].enabled
    ops.set_motion(motion="POSE")
    assert draw("animate").buttons["Replay"].enabled
