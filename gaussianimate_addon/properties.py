"""Settings kept in the scene, and what is known about an object."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import bpy

from .views import redraw_views

# By name of a property of objects: what follows its changes, for the object it belongs to.
FOLLOWERS: dict[str, Callable[[bpy.types.Object], None]] = {}


def _follow(name: str) -> Callable[[bpy.types.PropertyGroup, bpy.types.Context], None]:
    def update(notes: bpy.types.PropertyGroup, context: bpy.types.Context) -> None:
        if name in FOLLOWERS:
            FOLLOWERS[name](cast(bpy.types.Object, notes.id_data))

    return update


def _redraw(properties: bpy.types.PropertyGroup, context: bpy.types.Context) -> None:
    redraw_views()


class GaussianimateSettings(bpy.types.PropertyGroup):
    """What the sidebar's buttons use; one set a scene."""

    if TYPE_CHECKING:
        max_bones: int
        max_influences: int
        joint_threshold: float
        canonical_frame: int
        skeleton: str
        skeleton_armature: bpy.types.Object | None
        splat_count: int
        bake_directory: str
        bake_space: str
        secondary_range: bool
        secondary_start: int
        secondary_end: int
        secondary_all_parts: bool
    else:
        max_bones: bpy.props.IntProperty(
            name="Skin Bones", description="Most bones that carry the splats", default=50, min=1, max=500
        )
        max_influences: bpy.props.IntProperty(
            name="Influences", description="Most bones that move one splat", default=4, min=1, max=4
        )
        joint_threshold: bpy.props.FloatProperty(
            name="Joint Threshold",
            description="How clearly the motion must change along a limb to make a joint; higher gives fewer",
            default=0.3,
            min=0.01,
            max=1.0,
        )
        canonical_frame: bpy.props.IntProperty(
            name="Rest Frame",
            description="Frame of the capture, from 0, that becomes the rest pose; best with limbs apart",
            default=0,
            min=0,
        )
        skeleton: bpy.props.EnumProperty(
            name="Skeleton",
            items=(
                ("AUTO", "Automatic", "The one the capture brings, else one found in its motion"),
                ("EXTRACTED", "Extracted", "Joints found in the motion of the capture"),
                ("ARMATURE", "Armature", "An animated armature that moves along, as the body in a garment"),
            ),
            default="AUTO",
        )
        skeleton_armature: bpy.props.PointerProperty(
            name="Armature", type=bpy.types.Object, poll=lambda _, object: object.type == "ARMATURE"
        )
        splat_count: bpy.props.IntProperty(
            name="Splats",
            description="Number of splats that cover a mesh",
            default=30_000,
            min=100,
            max=2_000_000,
        )
        bake_directory: bpy.props.StringProperty(
            name="Folder",
            description="Folder for the baked frames",
            default="//bake/",
            subtype="DIR_PATH",
            options={"PATH_SUPPORTS_BLEND_RELATIVE"},
        )
        bake_space: bpy.props.EnumProperty(
            name="Space",
            items=(
                ("WORLD", "World", "As placed in the scene, in the axes of the imported file"),
                ("OBJECT", "Object", "In the object's own space"),
            ),
            default="WORLD",
        )
        secondary_range: bpy.props.BoolProperty(
            name="Custom Range", description="Bake other frames than those of the scene"
        )
        secondary_start: bpy.props.IntProperty(name="Start", description="First frame to bake", default=1)
        secondary_end: bpy.props.IntProperty(name="End", description="Last frame to bake", default=250)
        secondary_all_parts: bpy.props.BoolProperty(
            name="All Parts", description="List all parts of the body, not those worst covered only"
        )


def chosen_skeleton(settings: GaussianimateSettings) -> str:
    """Return which skeleton to build a rig on, as `build_rig` takes it."""
    if settings.skeleton != "ARMATURE":
        return settings.skeleton.lower()
    return settings.skeleton_armature.name if settings.skeleton_armature is not None else ""


class GaussianimateDisplay(bpy.types.PropertyGroup):
    """What the drawer shows in the viewports of a scene."""

    if TYPE_CHECKING:
        show: str
        elastic: bool
        outlines: bool
        gradients: bool
        unweighted: bool
    else:
        show: bpy.props.EnumProperty(
            name="Show",
            items=(
                ("COLOUR", "Colour", "The splats' own colours"),
                ("WEIGHT", "Weights", "How strongly the active bone holds each splat: blue not, red wholly"),
                ("STRETCH", "Stretch", "The largest stretch: white none, red twice as long, blue compressed"),
            ),
            update=_redraw,
        )
        elastic: bpy.props.BoolProperty(
            name="Elastic",
            description="Stretch splats by the gradients of their weights; off, to compare",
            default=True,
            update=_redraw,
        )
        outlines: bpy.props.BoolProperty(
            name="Outlines",
            description="Ring every splat at two standard deviations",
            update=_redraw,
        )
        gradients: bpy.props.BoolProperty(
            name="Gradients",
            description="Arrows along which the active bone's weight grows",
            update=_redraw,
        )
        unweighted: bpy.props.BoolProperty(
            name="Unweighted",
            description="Show splats that no bone holds in magenta",
            update=_redraw,
        )


class GaussianimateObject(bpy.types.PropertyGroup):
    """What import and rig building had to say about an object, one sentence a line, where it is from, who
    draws it in viewports, and of an armature how its skin bones move."""

    if TYPE_CHECKING:
        import_notes: str
        rig_notes: str
        source_folder: str
        display: str
        native_display: str
        secondary_motion: str
        colour_bones: bool
    else:
        import_notes: bpy.props.StringProperty()
        rig_notes: bpy.props.StringProperty()
        source_folder: bpy.props.StringProperty(
            name="Source", description="Folder of the imported files, which no bake writes over"
        )
        display: bpy.props.EnumProperty(
            name="Display",
            items=(
                ("NATIVE", "Native", "Blender draws the splats in viewports"),
                ("DRAWER", "GaussiAnimate", "Splats are posed on the graphics card and follow bones at once"),
            ),
            default="NATIVE",
            override={"LIBRARY_OVERRIDABLE"},  # linked rigs are posed by overrides
        )
        native_display: bpy.props.StringProperty(
            description="The object's own Display As, put back with Native display",
            override={"LIBRARY_OVERRIDABLE"},
        )
        secondary_motion: bpy.props.EnumProperty(
            name="Secondary Motion",
            description="What moves the skin bones of a rig while it is posed anew",
            items=(
                ("LIVE", "Live", "Skin bones answer every pose as the capture moved in poses like it"),
                ("BAKED", "Baked", "Skin bones play their keys, which needs nothing of this extension"),
                ("OFF", "Off", "Skin bones are rigid on the skeleton"),
            ),
            default="LIVE",
            override={"LIBRARY_OVERRIDABLE"},
            update=_follow("secondary_motion"),
        )
        colour_bones: bpy.props.BoolProperty(
            name="Colour Bones",
            description="Colour the skeleton by how far its pose is from captured ones: green, amber, red",
            override={"LIBRARY_OVERRIDABLE"},
            update=_follow("colour_bones"),
        )


CLASSES = (GaussianimateSettings, GaussianimateDisplay, GaussianimateObject)


def scene_settings(context: bpy.types.Context) -> GaussianimateSettings:
    """Return the extension's settings of the active scene."""
    return cast("GaussianimateSettings", context.scene.gaussianimate)  # pyright: ignore[reportAttributeAccessIssue]


def display_settings(scene: bpy.types.Scene) -> GaussianimateDisplay:
    """Return what the drawer shows in a scene."""
    return cast("GaussianimateDisplay", scene.gaussianimate_display)  # pyright: ignore[reportAttributeAccessIssue]


def object_notes(object: bpy.types.Object) -> GaussianimateObject:
    """Return what is noted about an object."""
    return cast("GaussianimateObject", object.gaussianimate)  # pyright: ignore[reportAttributeAccessIssue]


def register() -> None:
    """Add the settings to scenes and objects."""
    for cls in CLASSES:
        bpy.utils.register_class(cls)
    bpy.types.Scene.gaussianimate = bpy.props.PointerProperty(type=GaussianimateSettings)  # pyright: ignore[reportAttributeAccessIssue]
    bpy.types.Scene.gaussianimate_display = bpy.props.PointerProperty(type=GaussianimateDisplay)  # pyright: ignore[reportAttributeAccessIssue]
    bpy.types.Object.gaussianimate = bpy.props.PointerProperty(  # pyright: ignore[reportAttributeAccessIssue]
        type=GaussianimateObject, override={"LIBRARY_OVERRIDABLE"}
    )


def unregister() -> None:
    """Undo :func:`register`."""
    del bpy.types.Object.gaussianimate  # pyright: ignore[reportAttributeAccessIssue]
    del bpy.types.Scene.gaussianimate_display  # pyright: ignore[reportAttributeAccessIssue]
    del bpy.types.Scene.gaussianimate  # pyright: ignore[reportAttributeAccessIssue]
    for cls in reversed(CLASSES):
        bpy.utils.unregister_class(cls)
