"""Splats as pixels: projection, exact compositing and draw order. Numpy only."""
