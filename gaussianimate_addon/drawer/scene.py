"""What is drawn: splat objects of the file, their data uploaded once, and how they stand at each draw.

Everything that is kept from draw to draw is numbers; objects are looked up anew by name and session number,
which neither undo nor a loaded file can turn into a dead reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import bpy
import numpy as np

from ...core.errors import GaussiAnimateError
from ...gpu_shaders import SkinLayout
from ..attributes import splats
from ..modifiers import DEFORM, PLAYBACK, find_modifier, get_input
from ..point_cloud import is_splat_data, point_cloud_to_cloud
from ..skin_attributes import influence_count, read_skin
from .atlas import Atlas, Source, build_atlas
from .draw import Item
from .poses import PoseReader, marked_bones, pose_reader, read_transforms


@dataclass(frozen=True)
class Subject:
    """A splat object that the drawer draws.

    uid : session number of the object
    plays : its splats change with the frame and are taken as evaluated; else they are posed by the GPU
    instanced : a collection that holds the object is instanced somewhere
    """

    name: str
    uid: int
    plays: bool
    instanced: bool
    reader: PoseReader | None

    def find(self) -> bpy.types.Object | None:
        """Return the object, None where it is gone or no longer itself."""
        found = bpy.data.objects.get(self.name)
        if found is not None and found.session_uid == self.uid:
            return found
        return next((o for o in bpy.data.objects if o.session_uid == self.uid), None)


def subject_of(object: bpy.types.Object) -> Subject:
    """Return what the drawer needs to know of a splat object."""
    rigged = find_modifier(object, DEFORM) is not None
    playback = find_modifier(object, PLAYBACK)
    plays = not rigged and playback is not None and playback.show_viewport
    reader = pose_reader(object) if rigged else None
    return Subject(object.name, object.session_uid, plays, _may_be_instanced(object), reader)


def read_source(subject: Subject, depsgraph: bpy.types.Depsgraph) -> Source:
    """Read an object's splats (copies).

    Raises
    ------
    RigError : a part of the skin is missing
    """
    object = subject.find()
    assert object is not None
    data = splats(object.evaluated_get(depsgraph)) if subject.plays else splats(object)
    if not is_splat_data(data):  # an empty frame carries no attributes
        rest = point_cloud_to_cloud(splats(object))
        return Source(rest.take(np.zeros(len(rest), bool)))
    rigged = subject.reader is not None and influence_count(splats(object)) > 0
    return Source(point_cloud_to_cloud(data), read_skin(splats(object)) if rigged else None)


class SceneSplats:
    """The atlas of the drawn objects, rebuilt when their data change and only then.

    problem : why something is not drawn, one sentence; None where all is well
    """

    def __init__(self) -> None:
        self.subjects: tuple[Subject, ...] = ()
        self.atlas: Atlas | None = None
        self.problem: str | None = None
        self._sources: dict[int, Source] = {}
        self._built: tuple[object, ...] = ()
        self._stale = True

    def look_again(self) -> None:
        """Objects may have come, gone or been renamed."""
        self._stale = True

    def forget(self, uid: int | None = None) -> None:
        """The splats of an object (None: of all) may have changed."""
        self._stale = True
        if uid is None:
            self._sources.clear()
        else:
            self._sources.pop(uid, None)

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
        """
        if not self._stale and self._built[:1] in ((), (layout,)):
            return
        self._stale = False
        self.problem = None
        subjects = []
        for object in find():
            subject = subject_of(object)
            try:
                if subject.uid not in self._sources:
                    self._sources[subject.uid] = read_source(subject, depsgraph)
                subjects.append(subject)
            except GaussiAnimateError as error:
                self.problem = str(error)
        self.subjects = tuple(subjects)
        self._sources = {s.uid: self._sources[s.uid] for s in subjects}
        sources = list(self._sources.values())
        wanted = (layout, *map(id, sources))
        if wanted == self._built:
            return
        self.atlas, self._built = None, ()
        if sources:
            self.atlas, self._built = build_atlas(sources, layout), wanted

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
            worlds = list(_appearances(depsgraph, object, space, subject.instanced))
            if not worlds:
                continue
            modifier = find_modifier(object.evaluated_get(depsgraph), DEFORM)
            transforms = marks = None
            elastic = 1.0
            if subject.reader is not None:
                transforms = read_transforms(depsgraph, object, subject.reader)
                elastic = float(get_input(modifier, "Elastic")) if modifier is not None else 1.0
                armature = bpy.data.objects.get(subject.reader.armature)
                if with_marks and armature is not None:
                    marks = marked_bones(armature, len(subject.reader.rows))
            items += [Item(span, world, transforms, elastic, marks) for world in worlds]
        return items


def _appearances(
    depsgraph: bpy.types.Depsgraph,
    object: bpy.types.Object,
    space: bpy.types.SpaceView3D | None,
    instanced: bool,
) -> Iterator[np.ndarray]:
    """Yield the world matrix of the object, where it is visible, and of its visible instances."""
    evaluated = object.evaluated_get(depsgraph)
    shown = not object.hide_render if space is None else object.visible_in_viewport_get(space)
    if shown and object.name in depsgraph.view_layer_eval.objects:
        yield np.array(evaluated.matrix_world, np.float64)
    if not instanced:
        return
    for instance in depsgraph.object_instances:
        if not instance.is_instance or instance.object.original != object:
            continue
        parent = instance.parent.original
        if not parent.hide_render if space is None else parent.visible_in_viewport_get(space):
            yield np.array(instance.matrix_world, np.float64)


def _may_be_instanced(object: bpy.types.Object) -> bool:
    """Whether a collection that holds the object is instanced: then all instances must be looked through."""
    holders = {c for c in bpy.data.collections if object.name in c.all_objects}
    return any(o.instance_type == "COLLECTION" and o.instance_collection in holders for o in bpy.data.objects)
