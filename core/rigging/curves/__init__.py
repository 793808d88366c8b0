"""The shape of the rest pose: closed surface, mean-curvature contraction, curve skeleton."""
