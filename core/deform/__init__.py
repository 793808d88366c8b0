"""Gradient-rig deformation of Gaussian clouds: positions, covariances and colours."""
