"""The inner skeleton: joints on the curve, kinematic tree, binding and poses fitted to the motion."""
