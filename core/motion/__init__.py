"""Motion of the skin bones for new poses of the skeleton, learned from the captured ones; numpy only."""
