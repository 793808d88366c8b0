"""From a capture to a rig: clusters, SSDR, surface, curve skeleton, joints, tree, poses."""
