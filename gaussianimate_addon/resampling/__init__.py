"""Resampling in Blender: over-stretched splats split at rest, and the whole ones kept to start from again."""
