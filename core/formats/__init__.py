"""Files to clouds and captures, and clouds back to files."""
