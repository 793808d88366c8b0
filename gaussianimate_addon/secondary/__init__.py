"""Secondary motion: skin bones that answer the pose of the skeleton, live or baked."""
