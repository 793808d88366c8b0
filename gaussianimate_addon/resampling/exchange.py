"""Whole splats exchanged for resampled ones, and back."""

from __future__ import annotations

import bpy
import numpy as np

from ...core.errors import RigError
from ...core.skinning.skin import Skin
from ..attributes import has_attribute, read_attribute, splats, write_attribute
from ..bind import POINTS, remember_points
from ..capture_frames import COUNT
from ..point_cloud import BASE as COLOUR
from ..skin_attributes import BASE, SKIN, influence_count, remove_skin, write_skin
from ..weights.layer_list import fill_list
from ..weights.layers import LAYERS, stored_stack
from .carry import carry_attributes
from .digest import DIGEST, weights_digest
from .start import START, start_digest, start_of, whole_skin, whole_start
from .task import Answer, check_unchanged
from .whole import DEPTH, NOTES, ORIGIN, WHOLE, copy_of, edited_reason, followers, nearest_rows, whole_of

SUFFIX = ".whole"


def show_resampled(object: bpy.types.Object, answer: Answer, notes: str) -> None:
    """Give the object, and those that share its splats, resampled ones; the whole ones are kept.

    Parameters
    ----------
    notes : kept with the splats, for panels

    Raises
    ------
    RigError : splats or weights changed since they were read
    """
    data, found = splats(object), answer.found
    whole = whole_of(data) or data
    asked = answer.request.splats
    check_unchanged(object, asked, "while it was resampled; run it again")
    if whole is not data:
        whole = _brought_up(whole, data, asked.skin, asked.base)
    new = copy_of(data)
    carry_attributes(new, data, whole, found.origins, nearest_rows(data))
    _write_shapes(new, whole, answer)
    _write_weights(new, answer.skin, answer.base)
    write_attribute(new, ORIGIN, "INT", found.origins)
    write_attribute(new, DEPTH, "INT", found.depths)
    new[WHOLE], new[NOTES] = whole, notes
    new[DIGEST], new[START] = weights_digest(new), start_digest(start_of(new))
    _exchange(data, new)


def restore_whole(object: bpy.types.Object) -> None:
    """Put the whole splats back, with their weights as they are now.

    Raises
    ------
    RigError : the object was not resampled, is being edited, or has splats that were added since
    """
    data = splats(object)
    whole = whole_of(data)
    if whole is None:
        raise RigError(f"'{object.name}' was not resampled; its splats are whole")
    if len(data.points) > int(object.get(COUNT, len(data.points))):
        raise RigError(
            f"'{object.name}' has splats that were added after it was resampled, which would be lost; undo "
            "that, or delete them first"
        )
    skin = base = None
    if influence_count(data):
        stack, start = stored_stack(data), whole_start(data)
        skin, base = whole_skin(data, start), start if stack is not None and stack.layers else None
    whole = _brought_up(whole, data, skin, base)
    materials = list(data.materials)
    if list(whole.materials) != materials:
        whole.materials.clear()
        for material in materials:
            whole.materials.append(material)
    _exchange(data, whole)
    if (stack := stored_stack(whole)) is not None:
        fill_list(object, stack)


def _brought_up(
    whole: bpy.types.PointCloud, data: bpy.types.PointCloud, skin: Skin | None, base: Skin | None
) -> bpy.types.PointCloud:
    """Return the whole splats with the layers of ``data`` and these weights, None for none.

    A copy of the object, or another file, may need them as they were: a copy is returned then.
    """
    if whole.users > 1 + whole.use_fake_user or whole.library is not None:
        whole = copy_of(whole)
    if skin is not None:
        _write_weights(whole, skin, base)
    if LAYERS in data:
        whole[LAYERS] = data[LAYERS]
    elif LAYERS in whole:
        del whole[LAYERS]
    return whole


def _write_shapes(new: bpy.types.PointCloud, whole: bpy.types.PointCloud, answer: Answer) -> None:
    """Write what children do not share with the splat they come from."""
    cloud, origins = answer.found.cloud, answer.found.origins
    write_attribute(new, "position", "FLOAT_VECTOR", cloud.positions)
    write_attribute(new, "scale", "FLOAT_VECTOR", cloud.scales)
    write_attribute(new, "rotation", "QUATERNION", cloud.rotations)
    base = read_attribute(whole, COLOUR)[origins]
    base[:, 3] = cloud.opacities
    write_attribute(new, COLOUR, new.attributes[COLOUR].data_type, base)
    if has_attribute(whole, "radius"):
        sizes = np.median(answer.request.splats.cloud.scales, axis=1)[origins]
        with np.errstate(all="ignore"):
            shrunk = np.nan_to_num(np.median(cloud.scales, axis=1) / sizes, nan=1, posinf=1)
        write_attribute(new, "radius", "FLOAT", read_attribute(whole, "radius")[origins] * shrunk)
    new.update_tag()


def _write_weights(data: bpy.types.PointCloud, skin: Skin, base: Skin | None) -> None:
    write_skin(data, skin, SKIN)
    if base is None:
        remove_skin(data, BASE)
    else:
        write_skin(data, base, BASE)
    data.update_tag()


def _exchange(old: bpy.types.PointCloud, new: bpy.types.PointCloud) -> None:
    """Let all objects that show one point cloud show another, under its name.

    Raises
    ------
    RigError : one of them is being edited
    """
    name, shown = old.name, followers(old)
    if (reason := edited_reason(old)) is not None:
        raise RigError(reason)
    try:
        for object in shown:
            object.data = new
            if POINTS in object:
                remember_points(object)
    except BaseException:
        for object in shown:  # what is new goes with the error, and must not take objects along
            object.data = old
        raise
    old.name = f"{name[:50]}{SUFFIX}"  # of the longest names Blender would cut the suffix off
    new.name = name
    if not old.users:
        bpy.data.pointclouds.remove(old)
