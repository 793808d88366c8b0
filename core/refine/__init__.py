"""A rig refined by further captures of its asset."""
