"""Bind splats to any armature, with weights to start from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import bpy

from ..core.errors import MissingDependencyError, RigError
from ..core.progress import Progress
from ..core.skinning.skin import Skin
from ..gaussianimate_addon.bind import applied_reason
from ..gaussianimate_addon.job import JobOperator
from ..gaussianimate_addon.libraries import missing_library
from ..gaussianimate_addon.properties import object_notes
from ..gaussianimate_addon.subject import active_armature, find_object, linked_reason
from ..gaussianimate_addon.weights.binding import bind_splats
from ..gaussianimate_addon.weights.chosen import chosen_armature, chosen_splats
from ..gaussianimate_addon.weights.numbering import follow_numbers, planned_bones
from ..gaussianimate_addon.weights.starting import BindTask, Method, read_task, starting_skin

METHODS = (
    ("HEAT", "Bone Heat", "Heat that spreads from the bones over the splats; good for bodies"),
    ("ENVELOPE", "Envelopes", "The bones' envelopes, as they are set in Edit Mode"),
    ("PROXY", "Proxy Mesh", "The vertex groups of a mesh that the armature deforms"),
    ("CAPTURE", "Present Weights", "The weights the splats have, such as those of their capture's rig"),
    ("EMPTY", "Empty", "No weights: to be drawn from nothing"),
)


def bendy_note(armature: bpy.types.Object, names: list[str]) -> tuple[str, ...]:
    """Return one sentence where bones bend, which weights of whole bones cannot follow."""
    data = cast(bpy.types.Armature, armature.data)
    count = sum(data.bones[name].bbone_segments > 1 for name in names)
    if not count:
        return ()
    what = "1 bendy bone carries" if count == 1 else f"{count} bendy bones carry"
    return (f"{what} splats as straight bones do, without the bend between head and tail",)


@dataclass(frozen=True)
class Subjects:
    """Session numbers and names of the objects a bind is about."""

    splats: tuple[int, str]
    armature: tuple[int, str]


class GAUSSIANIMATE_OT_bind(JobOperator, bpy.types.Operator):
    """Let the deform bones of an armature carry the splats, with weights to start from"""

    bl_idname = "gaussianimate.bind"
    bl_label = "Bind to Armature"
    bl_options = {"REGISTER"}

    if TYPE_CHECKING:
        armature: str
        method: str
        proxy: str
    else:
        armature: bpy.props.StringProperty(
            name="Armature",
            description="Object whose deform bones carry the splats; empty: the selected one",
            options={"SKIP_SAVE"},
        )
        method: bpy.props.EnumProperty(name="Weights", items=METHODS)
        proxy: bpy.props.StringProperty(
            name="Proxy Mesh",
            description="Mesh whose vertex groups are taken; empty: one the armature deforms",
            options={"SKIP_SAVE"},
        )

    @classmethod
    def unready(cls, context: bpy.types.Context) -> str | None:
        """Splats of this file must be selected."""
        object = chosen_splats(context)
        if object is None:
            return "Select Gaussian splats and the armature that is to carry them"
        return linked_reason(object, object.data) or applied_reason(object)

    def prepare(self, context: bpy.types.Context) -> BindTask:
        """Read splats, bones and proxy."""
        object, armature = chosen_splats(context), self._armature(context)
        assert object is not None
        for edited in (object, armature):
            if edited.mode == "EDIT":
                raise RigError(f"'{edited.name}' is being edited; leave Edit Mode first")
        if self.method in ("HEAT", "PROXY") and (reason := missing_library("scipy", "Starting weights")):
            raise MissingDependencyError(reason)
        proxy = bpy.data.objects.get(self.proxy) if self.proxy else None
        if self.proxy and proxy is None:
            raise RigError(f"There is no object '{self.proxy}'; name the proxy mesh")
        context.view_layer.update()
        follow_numbers(armature)  # what was edited before
        bones = planned_bones(armature)  # numbered when all has gone well
        self._subjects = Subjects((object.session_uid, object.name), (armature.session_uid, armature.name))
        self._bones = [bone.name for bone in bones]
        task = read_task(object, armature, bones, cast(Method, self.method), proxy)
        if task.estimate and (reason := missing_library("scipy", "Estimating gradients")):
            raise MissingDependencyError(reason)
        return task

    @staticmethod
    def work(state: BindTask, progress: Progress) -> Skin:
        """Make the weights."""
        return starting_skin(state, progress)

    def apply(self, context: bpy.types.Context, result: Skin) -> None:
        """Store them and make the deformer."""
        object, armature = find_object(*self._subjects.splats), find_object(*self._subjects.armature)
        for edited in (object, armature):
            if edited.mode == "EDIT":
                raise RigError(f"'{edited.name}' is being edited; leave Edit Mode and bind again")
        if [bone.name for bone in planned_bones(armature)] != self._bones:
            raise RigError(f"The bones of '{armature.name}' changed meanwhile; bind again")
        notes = (*bind_splats(context, object, armature, result), *bendy_note(armature, self._bones))
        count = len(self._bones)
        summary = f"Bound to '{armature.name}', {count} deform bone{'s'[: count != 1]}"
        object_notes(object).rig_notes = "\n".join([summary, *notes])
        for note in notes:
            self.report({"INFO"}, note)
        self.report({"INFO"}, f"'{object.name}': {summary}")

    def _armature(self, context: bpy.types.Context) -> bpy.types.Object:
        if not self.armature:
            found = chosen_armature(context) or active_armature(context)
            if found is None:
                raise RigError("Select the armature that is to carry the splats, too")
            return found
        named = bpy.data.objects.get(self.armature)
        if named is None or named.type != "ARMATURE":
            raise RigError(f"There is no armature '{self.armature}'")
        return named
