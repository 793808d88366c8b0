"""Motion of another skeleton on this one: which bone is which, and the transfer. No Blender needed."""
