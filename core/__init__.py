"""The product: numpy and scipy functions on frozen dataclasses. Must not import Blender."""
