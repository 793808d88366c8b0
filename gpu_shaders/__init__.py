"""GLSL sources of the viewport drawer."""
