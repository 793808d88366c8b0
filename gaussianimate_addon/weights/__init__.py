"""Weights by gesture: armatures of any origin, starting weights, selection layers kept in the file."""
