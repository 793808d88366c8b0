"""What is drawn: splat objects of a scene, their data uploaded once, and how they stand at each draw.

Everything that is kept from draw to draw is numbers; objects are looked up anew by name and session number,
which neither undo nor a loaded file can turn into a dead reference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, cast

import bpy
import numpy as np

from ...core.errors import GaussiAnimateError
from ...gpu_shaders import SkinLayout
from ..attributes import splats
from ..modifiers import DEFORM, PLAYBACK, find_modifier, get_input
from ..point_cloud import is_splat_data, point_cloud_to_cloud
from ..skin_attributes import read_skin
from .appearances import appearances, may_appear, may_be_instanced
from .atlas import Atlas, Source, build_atlas
from .draw import Item
from .poses import PoseReader, find_object, marked_bones, pose_reader, read_transforms


@dataclass(frozen=True)
class Subject:
    """A splat object that the drawer draws.

    uid, data_uid : session numbers of the object and of its splats
    plays : its splats change with the frame and are taken as evaluated; else they are posed by the GPU
    instanced : something may show instances of the object
    problem : why it stands at rest, one sentence; None where all is well
    """

    name: str
    uid: int
    data_uid: int
    plays: bool
    instanced: bool
    reader: PoseReader | None
    problem: str | None = None

    def find(self) -> bpy.types.Object | None:
        """Return the object, None where it is gone."""
        return find_object(self.name, self.uid)


def subject_of(object: bpy.types.Object, instanced: bool | None = None) -> Subject:
    """Return what the drawer needs to know of a splat object; ``instanced`` where that is known."""
    rigged = find_modifier(object, DEFORM) is not None
    playback = find_modifier(object, PLAYBACK)
    plays = not rigged and playback is not None and playback.show_viewport
    reader = problem = None
    try:
        reader = pose_reader(object) if rigged else None
    except GaussiAnimateError as error:
        problem = str(error)
    if instanced is None:
        instanced = may_be_instanced(object)
    data = splats(object).session_uid
    return Subject(object.name, object.session_uid, data, plays, instanced, reader, problem)


def read_source(subject: Subject, depsgraph: bpy.types.Depsgraph) -> tuple[Source, str | None]:
    """Read an object's splats (copies), and say why they are without their skin, if they are."""
    object = subject.find()
    assert object is not None
    data = splats(object.evaluated_get(depsgraph)) if subject.plays else splats(object)
    if not is_splat_data(data):  # an empty frame carries no attributes
        rest = point_cloud_to_cloud(splats(object))
        return Source(rest.take(np.zeros(len(rest), bool))), None
    cloud = point_cloud_to_cloud(data)
    if find_modifier(object, DEFORM) is None:
        return Source(cloud), None
    try:
        skin = read_skin(splats(object))
    except GaussiAnimateError as error:
        return Source(cloud), str(error)
    bone = int(skin.indices.max(initial=-1))
    if subject.reader is not None and bone >= len(subject.reader.rows):
        return Source(cloud), f"The skin of '{subject.name}' names a missing bone {bone}; build the rig again"
    return Source(cloud, skin), None


@dataclass(frozen=True)
class _Read:
    """Splats as read; ``late``: the object was hidden, so that its frame may be an earlier one."""

    source: Source
    plays: bool
    late: bool
    problem: str | None


class SceneSplats:
    """The atlas of the objects drawn in one view layer, rebuilt when their data change and only then.

    What handlers call only takes notes, for they may run in the thread of a render; `update` acts on them.

    skip_hidden : leave captures that play and are hidden at the frame they were last seen at
    problem : why something is not drawn, one sentence; None where all is well
    """

    def __init__(self, skip_hidden: bool = False) -> None:
        self.skip_hidden = skip_hidden
        self.subjects: tuple[Subject, ...] = ()
        self.atlas: Atlas | None = None
        self.problem: str | None = None
        self._read: dict[int, _Read] = {}
        self._built: tuple[SkinLayout, list[Source]] | None = None
        self._forgotten: set[int] = set()
        self._forgot_all = False
        self._stale = True
        self._rigs_stale = False

    def look_again(self) -> None:
        """Objects may have come, gone or been renamed."""
        self._stale = True

    def look_at_rigs(self) -> None:
        """Bones of the objects drawn may have other rest poses."""
        self._rigs_stale = True

    def forget(self, uid: int | None = None) -> None:
        """The splats of an object (None: of all) may have changed."""
        if uid is None:
            self._forgot_all = self._stale = True
        else:
            self._forgotten.add(uid)

    def update(
        self,
        find: Callable[[], Sequence[bpy.types.Object]],
        depsgraph: bpy.types.Depsgraph,
        layout: SkinLayout,
    ) -> None:
        """Upload what changed.

        Parameters
        ----------
        find : returns the splat objects to draw; called only after `look_again` or `forget`

        Raises
        ------
        RigError : the device cannot hold them
        """
        unchanged = self._built is None or self._built[0] == layout
        if unchanged and not (self._stale or self._rigs_stale or self._forgotten):
            return
        self.problem = None
        if self._stale:
            scene = cast(bpy.types.Scene, depsgraph.scene)
            subjects = [subject_of(object) for object in find() if may_appear(object, scene)]
        elif self._rigs_stale:
            subjects = [looked_at for subject in self.subjects if (looked_at := _with_rig(subject))]
        else:
            subjects = list(self.subjects)
        self._stale = self._rigs_stale = False
        self._read_changed(subjects, depsgraph)
        self._build(layout)

    def _read_changed(self, subjects: Sequence[Subject], depsgraph: bpy.types.Depsgraph) -> None:
        forgotten, self._forgotten = self._forgotten, set()
        forgot_all, self._forgot_all = self._forgot_all, False
        read = {}
        for subject in subjects:
            fresh = not (forgot_all or {subject.uid, subject.data_uid} & forgotten)
            late = self.skip_hidden and subject.plays and _is_hidden(subject, depsgraph)
            read[subject.uid] = _read_again(self._read.get(subject.uid), fresh, late, subject, depsgraph)
            self.problem = self.problem or subject.problem or read[subject.uid].problem
        self.subjects, self._read = tuple(subjects), read

    def _build(self, layout: SkinLayout) -> None:
        sources = [each.source for each in self._read.values()]
        if self._built is not None and self._built[0] == layout and _same(self._built[1], sources):
            return
        self.atlas = self._built = None
        self.atlas = build_atlas(sources, layout) if sources else None
        self._built = layout, sources

    def items(
        self,
        depsgraph: bpy.types.Depsgraph,
        space: bpy.types.SpaceView3D | None = None,
        with_marks: bool = False,
    ) -> list[Item]:
        """Return every visible appearance of the objects as they stand now.

        Parameters
        ----------
        space : the viewport whose hiding, local view and collections count; None: what renders
        with_marks : say which bones the active bone stands for
        """
        items = []
        for span, subject in enumerate(self.subjects):
            object = subject.find()
            if object is None:
                continue
            worlds = appearances(depsgraph, object, space, subject.instanced)
            if not worlds:
                continue
            modifier = find_modifier(object.evaluated_get(depsgraph), DEFORM)
            transforms = marks = None
            elastic = 1.0
            if subject.reader is not None:
                if modifier is not None and (modifier.show_viewport if space else modifier.show_render):
                    transforms = read_transforms(depsgraph, object, subject.reader)
                    elastic = float(get_input(modifier, "Elastic"))
                armature = subject.reader.find()
                if with_marks and armature is not None:
                    marks = marked_bones(armature, len(subject.reader.rows))
            items += [Item(span, world, transforms, elastic, marks) for world in worlds]
        return items


def _with_rig(subject: Subject) -> Subject | None:
    """Return the subject as its rig is now, None where the object is gone."""
    if subject.reader is not None and subject.reader.fits():
        return subject
    object = subject.find()
    return None if object is None else subject_of(object, subject.instanced)


def _read_again(
    kept: _Read | None, fresh: bool, late: bool, subject: Subject, depsgraph: bpy.types.Depsgraph
) -> _Read:
    """Return the splats of a subject, read only where what was kept may be another's or out of date.

    Equal data keep their identity, so that undo of something else uploads nothing.
    """
    usable = kept if kept is not None and kept.plays == subject.plays else None
    if usable is not None and (late or (fresh and not usable.late)):
        return replace(usable, late=late)
    source, problem = read_source(subject, depsgraph)
    if usable is not None and _equal(usable.source, source):
        source = usable.source
    return _Read(source, subject.plays, late, problem)


def _is_hidden(subject: Subject, depsgraph: bpy.types.Depsgraph) -> bool:
    object = subject.find()
    return (
        object is not None
        and not subject.instanced
        and not object.visible_get(view_layer=depsgraph.view_layer)
    )


def _same(one: Sequence[Source], other: Sequence[Source]) -> bool:
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


def _equal(one: Any, other: Any) -> bool:
    """Whether two sources, or dataclasses within them, hold the same numbers."""
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    if not is_dataclass(one) or other is None:
        return one == other
    return all(_equal(getattr(one, f.name), getattr(other, f.name)) for f in fields(one))
