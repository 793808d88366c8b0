"""Splats that a pose would stretch out of shape, split at rest into smaller ones that look the same."""
