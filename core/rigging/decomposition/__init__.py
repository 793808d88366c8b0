"""Outer bones and weights from motion: clusters, then smooth skinning decomposition (SSDR)."""
