"""The viewport drawer: splats skinned on the GPU by their weights and the gradients of these."""
