"""How well a rig answers poses it has not seen: training and held-out frames, baselines, measurements."""
