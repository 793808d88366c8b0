"""Skins: influences per splat, their weights and the spatial gradients of the weights."""
