"""The demo's picture: a capture frame, a new pose and the skeleton side by side, rendered by Cycles."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import bmesh
import bpy
import numpy as np
from mathutils import Matrix, Vector

from gaussianimate.core.cloud import GaussianCloud
from gaussianimate.gaussianimate_addon.point_cloud import cloud_to_point_cloud

GHOST_OPACITY = 0.04
SPACING = 1.75  # metres between the figures
THICK, THIN = 0.02, 0.005  # radii of bones and of links to a parent, metres


class Picture:
    """A scene of its own in which figures stand side by side; removed again after rendering."""

    def __init__(self) -> None:
        self.scene = bpy.data.scenes.new("Picture")
        world = bpy.data.worlds.new("Picture")
        world.use_nodes = True
        world.node_tree.nodes["Background"].inputs["Color"].default_value = (0.86, 0.88, 0.9, 1)
        self.scene.world = world
        self.columns = 0

    def add_figure(self, label: str, cloud: GaussianCloud, matrix: Matrix, opacity: float = 1.0) -> Matrix:
        """Stand a cloud in the next column; return the matrix that puts it there."""
        placed = Matrix.Translation((SPACING * self.columns, 0, 0)) @ matrix
        faded = replace(cloud, opacities=cloud.opacities * np.float32(opacity))
        self._link(bpy.data.objects.new(label, cloud_to_point_cloud(faded, label)), placed)
        text = bpy.data.curves.new(label, "FONT")
        text.body, text.size, text.align_x = label, 0.13, "CENTER"
        text.materials.append(_glow(label, (0.05, 0.05, 0.06)))
        upright = Matrix.Translation((SPACING * self.columns, 0, -1.08)) @ Matrix.Rotation(np.pi / 2, 4, "X")
        self._link(bpy.data.objects.new(label, text), upright)
        self.columns += 1
        return placed

    def add_bones(self, armature: bpy.types.Object, collection: str, placed: Matrix) -> None:
        """Show a bone collection as solid bones, in the pose of the armature."""
        shape = bmesh.new()
        for bone in armature.data.collections[collection].bones:
            pose = armature.pose.bones[bone.name]
            _solid_bone(shape, pose.head, pose.tail)
            if pose.parent and (pose.head - pose.parent.tail).length > 1e-4:
                _rod(shape, pose.parent.head, pose.head, THIN, THIN)
        mesh = bpy.data.meshes.new(collection)
        shape.to_mesh(mesh)
        shape.free()
        mesh.materials.append(_glow(collection, (0.9, 0.25, 0.05)))
        self._link(bpy.data.objects.new(collection, mesh), placed)

    def render(self, path: Path, width: int = 1500, height: int = 720, samples: int = 24) -> None:
        """Render the figures to a PNG file and take the scene apart."""
        camera = bpy.data.objects.new("Camera", bpy.data.cameras.new("Camera"))
        camera.data.type, camera.data.ortho_scale = "ORTHO", SPACING * self.columns
        middle = Vector((SPACING * (self.columns - 1) / 2, 0, 0.0))
        self._link(
            camera, Matrix.Translation(middle + Vector((0, -6, 0))) @ Matrix.Rotation(np.pi / 2, 4, "X")
        )
        scene, settings = self.scene, self.scene.render
        scene.camera = camera
        settings.engine = "CYCLES"
        scene.cycles.samples, scene.cycles.use_denoising = samples, False
        settings.resolution_x, settings.resolution_y, settings.resolution_percentage = width, height, 100
        settings.image_settings.file_format = "PNG"
        settings.filepath = str(path)
        scene.view_settings.view_transform = "Standard"
        bpy.ops.render.render(write_still=True, scene=scene.name)
        self._remove()

    def _link(self, object: bpy.types.Object, matrix: Matrix) -> None:
        self.scene.collection.objects.link(object)
        object.matrix_world = matrix

    def _remove(self) -> None:
        data = [object.data for object in self.scene.objects]
        bpy.data.batch_remove([*self.scene.objects, *data, self.scene.world, self.scene])


def _solid_bone(shape: bmesh.types.BMesh, head: Vector, tail: Vector) -> None:
    """Add an octahedron from head to tail, widest near the head, and a ball at the head."""
    waist = head.lerp(tail, 0.15)
    bmesh.ops.create_icosphere(shape, subdivisions=2, radius=THICK, matrix=Matrix.Translation(head))
    _rod(shape, head, waist, 0, THICK)
    _rod(shape, waist, tail, THICK, 0)


def _rod(shape: bmesh.types.BMesh, start: Vector, end: Vector, radius1: float, radius2: float) -> None:
    """Add a four-sided cone from start to end."""
    along = end - start
    middle = Matrix.Translation(start.lerp(end, 0.5)) @ along.to_track_quat("Z", "Y").to_matrix().to_4x4()
    bmesh.ops.create_cone(
        shape, cap_ends=True, segments=4, radius1=radius1, radius2=radius2, depth=along.length, matrix=middle
    )


def _glow(name: str, color: tuple[float, float, float]) -> bpy.types.Material:
    """Return an unlit material, as splats are unlit too."""
    material = bpy.data.materials.new(name)
    material.use_nodes = True
    nodes = material.node_tree.nodes
    nodes.clear()
    emission, output = nodes.new("ShaderNodeEmission"), nodes.new("ShaderNodeOutputMaterial")
    emission.inputs["Color"].default_value = (*color, 1)
    material.node_tree.links.new(emission.outputs[0], output.inputs["Surface"])
    return material
