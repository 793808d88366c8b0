"""A bind that is cancelled, fails or meets a linked armature: all is as before, or one sentence says why."""

import bpy
import numpy as np
import pytest
from compare import evaluated
from drawn_weights import BONES, add_armature, add_splats, dense, select
from mathutils import Quaternion

from gaussianimate.core.errors import Cancelled
from gaussianimate.gaussianimate_addon.armature import SKIN_BONE, edit_mode
from gaussianimate.gaussianimate_addon.attributes import read_attribute
from gaussianimate.gaussianimate_addon.deform_nodes import bone_names
from gaussianimate.gaussianimate_addon.deformer import deformer, deformer_armature
from gaussianimate.gaussianimate_addon.skin_attributes import read_skin
from gaussianimate.gaussianimate_addon.weights import binding
from gaussianimate.gaussianimate_addon.weights.layers import LAYERS, has_layers, read_layers
from gaussianimate.operators.bind_armature import GAUSSIANIMATE_OT_bind as BIND

ops = bpy.ops.gaussianimate
VIEW = (
    '{"view": [[1, 0, 0, -1.5], [0, 1, 0, 0], [0, 0, 1, -5], [0, 0, 0, 1]], "projection": [[0.25, 0, 0, 0], '
    '[0, 0.3333, 0, 0], [0, 0, -0.1, 0], [0, 0, 0, 1]], "window": [0, 0, 800, 600]}'
)  # 100 pixels a metre of the bar, which begins at x = 250


@pytest.fixture
def stage(empty_scene):
    object, armature = add_splats(empty_scene), add_armature(empty_scene)
    select(object)
    return object, armature


def numbers(armature):
    return {bone.name: bone[SKIN_BONE] for bone in armature.data.bones if SKIN_BONE in bone}


def snapshot(object):
    """All there is of the splats: attributes, properties, modifiers, parent; and how many data-blocks."""
    values = {a.name: read_attribute(object.data, a.name).tobytes() for a in object.data.attributes}
    names = [(m.name, m.node_group.name) for m in object.modifiers]
    return values, object.data.name, object.data.get(LAYERS), names, object.parent, len(bpy.data.user_map())


def draw(bone="arm.L", low=350, high=450):
    ops.add_selection_layer(
        bone=bone, shape="RECTANGLE", points=f"[[{low}, 200], [{high}, 400]]", view=VIEW, through=True
    )


def add_tail(armature):
    """Give the armature a bone that has no number yet."""
    with edit_mode(bpy.context, armature):
        new = armature.data.edit_bones.new("tail")
        new.head, new.tail = (1.5, 0, 0), (2, 0, 0)


def fail(error):
    def step(*_, **__):
        raise error

    return step


def test_a_cancelled_bind_leaves_no_numbers(stage, monkeypatch):
    object, armature = stage
    before = snapshot(object)
    monkeypatch.setattr(BIND, "work", staticmethod(fail(Cancelled("cancelled"))))
    assert ops.bind(armature="hand made", method="HEAT") == {"CANCELLED"}
    assert not numbers(armature) and snapshot(object) == before


def test_a_cancelled_bind_keeps_the_numbers_there_were(stage, monkeypatch):
    object, armature = stage
    ops.bind(armature="hand made", method="HEAT")
    draw()
    add_tail(armature)
    select(object)
    before, known = snapshot(object), numbers(armature)
    monkeypatch.setattr(BIND, "work", staticmethod(fail(Cancelled("cancelled"))))
    ops.bind(armature="hand made", method="EMPTY")
    assert numbers(armature) == known and snapshot(object) == before


@pytest.mark.parametrize("bound", [False, True])
@pytest.mark.parametrize("step", ["restart_layers", "add_deformer"])
def test_a_failed_bind_leaves_all_as_it_was(stage, monkeypatch, bound, step):
    """With splats of its own to be made, a new bone to be numbered, and layers to be kept."""
    object, armature = stage
    other = object.copy()
    bpy.context.scene.collection.objects.link(other)
    if bound:
        ops.bind(armature="hand made", method="HEAT")
        draw()
        add_tail(armature)
        select(object)
    before, known = snapshot(object), numbers(armature)
    real = getattr(binding, step)

    def half(*arguments):
        if step == "restart_layers":
            real(*arguments)
        raise MemoryError

    monkeypatch.setattr(binding, step, half)
    with pytest.raises(RuntimeError, match="not enough free memory"):
        ops.bind(armature="hand made", method="ENVELOPE")
    monkeypatch.undo()
    after = snapshot(object)
    assert numbers(armature) == known
    assert after == before
    if bound:
        assert bone_names(deformer(object).node_group)[:3] == list(BONES)
        assert read_layers(object).bones[:3] == BONES
    ops.bind(armature="hand made", method="ENVELOPE")
    assert deformer_armature(object) == armature


def test_bones_and_splats_that_change_meanwhile_are_told(stage, monkeypatch):
    object, armature = stage
    work = BIND.work

    def renamed(state, progress):
        armature.data.bones["hip"].name = "pelvis"
        return work(state, progress)

    monkeypatch.setattr(BIND, "work", staticmethod(renamed))
    with pytest.raises(RuntimeError, match="The bones of 'hand made' changed meanwhile; bind again"):
        ops.bind(armature="hand made", method="ENVELOPE")

    def thinned(state, progress):
        object.data.resize(100)
        return work(state, progress)

    monkeypatch.setattr(BIND, "work", staticmethod(thinned))
    with pytest.raises(RuntimeError, match="The splats of 'bar' changed meanwhile; bind again"):
        ops.bind(armature="hand made", method="ENVELOPE")
    assert not numbers(armature) and not has_layers(object) and deformer(object) is None


def test_layers_of_bones_the_new_armature_lacks_are_told(stage):
    object, _ = stage
    ops.bind(armature="hand made", method="HEAT")
    draw("arm.L")
    draw("arm.L", 450, 500)
    draw("hip", 250, 300)
    other = add_armature(bpy.context.scene, name="other")
    other.data.bones["arm.L"].name = "forearm"
    select(object)
    ops.bind(armature="other", method="HEAT")
    assert [layer.bone for layer in read_layers(object).layers] == ["hip"]
    notes = object.gaussianimate.rig_notes
    assert "Dropped 2 selection layers of bones that the armature does not have: 'arm.L'" in notes


def test_splats_that_no_envelope_reaches_are_told(stage, capfd):
    object, armature = stage
    for bone in armature.data.bones:
        bone.head_radius = bone.tail_radius = bone.envelope_distance = 1e-4
    ops.bind(armature="hand made", method="ENVELOPE")
    said = capfd.readouterr().out
    for note in ("400 splats without weights stay at rest", "enlarge them in Edit Mode"):
        assert note in said and note in object.gaussianimate.rig_notes


# Armatures of another file


@pytest.fixture
def library(empty_scene, tmp_path):
    """Return a function that saves the armature, numbered or not, and links it into a file with splats."""

    def make(numbered):
        object, armature = add_splats(empty_scene), add_armature(empty_scene)
        select(object)
        if numbered:
            ops.bind(armature="hand made", method="EMPTY")
        bpy.data.objects.remove(object)
        armature.data.use_fake_user = True
        path = str(tmp_path / "library.blend")
        bpy.ops.wm.save_as_mainfile(filepath=path)
        bpy.ops.wm.read_homefile(app_template="", use_empty=True)
        with bpy.data.libraries.load(path, link=True) as (_, wanted):
            wanted.objects = ["hand made"]
        bpy.context.scene.collection.objects.link(wanted.objects[0])
        return add_splats(bpy.context.scene), wanted.objects[0]

    return make


def test_a_linked_armature_without_numbers_is_told_what_to_do(library):
    object, armature = library(False)
    with pytest.raises(RuntimeError, match="bind splats to it in that file first, or make it"):
        ops.bind(armature=armature.name, method="ENVELOPE")
    assert deformer(object) is None and not has_layers(object)
    own = armature.make_local()
    own.data.make_local()
    assert ops.bind(armature=own.name, method="ENVELOPE") == {"FINISHED"}
    assert deformer_armature(object) == own


@pytest.mark.parametrize("numbered", [False, True])
def test_overridden_bones_cannot_be_numbered_either(library, tmp_path, numbered):
    """Numbers written into a library override would be gone when the file is opened again."""
    object, linked = library(numbered)
    armature = linked.override_create(remap_local_usages=True)
    armature.data = linked.data.override_create(remap_local_usages=True)
    assert armature.data.library is None and armature.data.override_library is not None
    if not numbered:
        with pytest.raises(RuntimeError, match="bind splats to it in that file first"):
            ops.bind(armature=armature.name, method="ENVELOPE")
        return
    ops.bind(armature=armature.name, method="EMPTY")
    draw("arm.L")
    before = dense(read_skin(object.data), 3)
    path = str(tmp_path / "shot.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path)
    bpy.ops.wm.open_mainfile(filepath=path)
    object = bpy.data.objects["bar"]
    armature = deformer_armature(object)
    armature.data.display_type = "STICK"  # an edit of the armature, which is looked at
    bpy.context.view_layer.update()
    assert [layer.bone for layer in read_layers(object).layers] == ["arm.L"]
    np.testing.assert_array_equal(dense(read_skin(object.data), 3), before)


def test_a_linked_armature_whose_bones_have_numbers_carries_splats(library):
    """Posed through a library override, as characters are."""
    object, linked = library(True)
    armature = linked.override_create(remap_local_usages=True)
    assert armature.library is None and armature.data.library is not None
    select(object)
    assert ops.bind(armature=armature.name, method="HEAT") == {"FINISHED"}
    assert read_layers(object).bones == BONES and dense(read_skin(object.data), 3).sum() > 399
    rest = evaluated(object).positions.copy()
    draw("arm.R", 480, 560)
    bone = armature.pose.bones["arm.R"]
    bone.rotation_mode = "QUATERNION"
    bone.rotation_quaternion = Quaternion((0, 0, 1), 0.8)
    bpy.context.view_layer.update()
    assert np.abs(evaluated(object).positions - rest).max() > 0.3
    with pytest.raises(RuntimeError, match="deforms nothing"):
        draw("control")
